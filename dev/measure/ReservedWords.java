import java.util.TreeSet;
import org.apache.calcite.sql.parser.SqlParser;
import org.apache.flink.sql.parser.impl.FlinkSqlParserImpl;

/** Prints the reserved words of Flink's SQL parser, one a line. */
public class ReservedWords {
    public static void main(String[] arguments) {
        var parser = SqlParser.create("", SqlParser.config().withParserFactory(FlinkSqlParserImpl.FACTORY));
        var metadata = parser.getMetadata();
        for (String token : new TreeSet<>(metadata.getTokens())) {
            if (metadata.isReservedWord(token)) {
                System.out.println(token);
            }
        }
    }
}
