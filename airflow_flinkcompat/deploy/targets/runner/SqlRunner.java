package flinkcompat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Set;

import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.ExecutionOptions;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableException;
import org.apache.flink.table.api.config.TableConfigOptions;
import org.apache.flink.table.api.internal.TableEnvironmentInternal;
import org.apache.flink.table.operations.Operation;
import org.apache.flink.table.operations.command.ResetOperation;
import org.apache.flink.table.operations.command.SetOperation;

/**
 * Runs the statements of a SQL script as a Flink program, on Flink 1.x, which has no driver of its own for that.
 *
 * <p>Arguments: {@code --statements LIST}, or {@code --scriptUri URI} of a file that holds such a list. A LIST is the
 * statements in order, each as base64 of its UTF-8 (the plain or the URL-safe alphabet, padded or not), with commas
 * between them. Base64 keeps line breaks and quotes out of Flink's configuration file, through which the arguments of
 * an application pass.
 *
 * <p>Options that a script sets are those of its job alone, and a RESET takes back what the script set: what the
 * cluster or the submission configured (job id, savepoint) is below them and stays. No statement's text is ever
 * printed, because it may hold resolved secrets.
 */
public final class SqlRunner {

    private static final String USAGE = "expected --statements LIST or --scriptUri URI";

    private final TableEnvironmentInternal tables;
    private final Set<String> keysOfScript = new HashSet<>();

    private SqlRunner(TableEnvironmentInternal tables) {
        this.tables = tables;
    }

    /** Runs every statement; returns when the job is submitted, not when it ends. */
    public static void main(String[] arguments) throws Exception {
        List<String> statements = decode(list(arguments));
        Configuration mode = new Configuration();
        mode.set(
                ExecutionOptions.RUNTIME_MODE,
                StreamExecutionEnvironment.getExecutionEnvironment()
                        .getConfiguration()
                        .get(ExecutionOptions.RUNTIME_MODE));
        EnvironmentSettings settings = EnvironmentSettings.newInstance().withConfiguration(mode).build();
        SqlRunner runner = new SqlRunner((TableEnvironmentInternal) TableEnvironment.create(settings));
        for (int number = 1; number <= statements.size(); number++) {
            try {
                runner.run(statements.get(number - 1));
            } catch (Exception error) {
                String place = "Statement " + number + " of " + statements.size();
                throw new TableException(place + " failed: " + reasons(error), error);
            }
        }
    }

    private void run(String statement) {
        // Flink's own parser tells SET and RESET, which its executeSql refuses before 2.0.
        List<Operation> operations = tables.getParser().parse(statement);
        if (operations.size() != 1) {
            throw new IllegalArgumentException("it holds " + operations.size() + " statements instead of one");
        }
        Operation operation = operations.get(0);
        if (operation instanceof SetOperation) {
            set((SetOperation) operation);
        } else if (operation instanceof ResetOperation) {
            reset((ResetOperation) operation);
        } else {
            // A program that waits for its job would never return to who submitted it.
            tables.getConfig().set(TableConfigOptions.TABLE_DML_SYNC, false);
            tables.executeInternal(operation);
        }
    }

    private void set(SetOperation operation) {
        // Without a key it only lists what is set.
        if (operation.getKey().isPresent() && operation.getValue().isPresent()) {
            String key = operation.getKey().get().trim();
            tables.getConfig().set(key, operation.getValue().get().trim());
            keysOfScript.add(key);
        }
    }

    private void reset(ResetOperation operation) {
        if (operation.getKey().isPresent()) {
            unset(operation.getKey().get().trim());
        } else {
            new ArrayList<>(keysOfScript).forEach(this::unset);
        }
    }

    private void unset(String key) {
        if (keysOfScript.remove(key)) {
            ConfigOption<String> option = ConfigOptions.key(key).stringType().noDefaultValue();
            tables.getConfig().getConfiguration().removeConfig(option);
        }
    }

    /**
     * What each cause says, in one line, the first one of all first: who reports the error may keep little of it (the
     * Kubernetes operator keeps 2,048 characters of a stack trace), and the last one of all often says no more than
     * "Failed to execute sql".
     */
    private static String reasons(Throwable error) {
        LinkedList<String> reasons = new LinkedList<>();
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            String message = cause.getMessage() == null ? cause.getClass().getName() : cause.getMessage();
            String reason = message.split("\\R", 2)[0].trim();
            // Many an exception repeats in its own message what it was caused by.
            reasons.removeIf(later -> later.endsWith(reason));
            reasons.addFirst(reason);
        }
        return String.join("; then: ", reasons);
    }

    private static String list(String[] arguments) throws IOException {
        if (arguments.length != 2) {
            throw new IllegalArgumentException(USAGE + ", got " + arguments.length + " arguments");
        }
        switch (arguments[0]) {
            case "--statements":
                return arguments[1];
            case "--scriptUri":
                return read(arguments[1]);
            default:
                throw new IllegalArgumentException(USAGE + ", got the option " + arguments[0]);
        }
    }

    private static String read(String uri) throws IOException {
        Path path = new Path(uri);
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        byte[] buffer = new byte[8192];
        try (InputStream file = path.getFileSystem().open(path)) {
            for (int length = file.read(buffer); length >= 0; length = file.read(buffer)) {
                content.write(buffer, 0, length);
            }
        }
        return new String(content.toByteArray(), StandardCharsets.US_ASCII);
    }

    private static List<String> decode(String list) {
        List<String> statements = new ArrayList<>();
        for (String encoded : list.trim().split(",", -1)) {
            String alphabet = encoded.trim().replace('+', '-').replace('/', '_');
            try {
                ByteBuffer bytes = ByteBuffer.wrap(Base64.getUrlDecoder().decode(alphabet));
                // Strict, because bytes that are not UTF-8 would silently become other characters of a literal.
                statements.add(StandardCharsets.UTF_8.newDecoder().decode(bytes).toString());
            } catch (IllegalArgumentException | CharacterCodingException error) {
                String place = "Statement " + (statements.size() + 1) + " of the list";
                throw new IllegalArgumentException(place + " is not base64 of UTF-8: " + error.getMessage());
            }
        }
        return statements;
    }
}
