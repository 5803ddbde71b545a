package flinkcompat.planner;

import java.util.*;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.catalog.DataTypeFactory;
import org.apache.flink.table.functions.*;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.inference.*;

/** Functions in place of ones whose class is absent: each takes any arguments, and is never called. */
final class AssumedFunction {
    /** A function of a kind; {@code results} are its results by the number of arguments, {@code ""} for any other. */
    static UserDefinedFunction of(String kind, Map<String, DataType> results) {
        return switch (kind) {
            case "table" -> new OfTable(results);
            case "aggregate" -> new OfAggregate(results);
            default -> new OfScalar(results);
        };
    }

    private static TypeInference.Builder anythingTo(Map<String, DataType> results) {
        return TypeInference.newBuilder().inputTypeStrategy(InputTypeStrategies.WILDCARD)
            .outputTypeStrategy(call -> Optional.of(results.getOrDefault(
                String.valueOf(call.getArgumentDataTypes().size()), results.get(""))));
    }

    public static final class OfScalar extends ScalarFunction {
        private final Map<String, DataType> results;

        OfScalar(Map<String, DataType> results) { this.results = results; }

        public Object eval(Object... arguments) { return null; }

        @Override public TypeInference getTypeInference(DataTypeFactory types) { return anythingTo(results).build(); }
    }

    public static final class OfTable extends TableFunction<Object> {
        private final Map<String, DataType> results;

        OfTable(Map<String, DataType> results) { this.results = results; }

        public void eval(Object... arguments) {}

        @Override public TypeInference getTypeInference(DataTypeFactory types) { return anythingTo(results).build(); }
    }

    /** Its accumulator is a number: the type of the real one is not known, and neither line chooses operators by it. */
    public static final class OfAggregate extends AggregateFunction<Object, Long> {
        private final Map<String, DataType> results;

        OfAggregate(Map<String, DataType> results) { this.results = results; }

        @Override public Long createAccumulator() { return 0L; }

        @Override public Object getValue(Long accumulator) { return null; }

        public void accumulate(Long accumulator, Object... arguments) {}

        public void retract(Long accumulator, Object... arguments) {}

        public void merge(Long accumulator, Iterable<Long> others) {}

        @Override public TypeInference getTypeInference(DataTypeFactory types) {
            return anythingTo(results).accumulatorTypeStrategy(TypeStrategies.explicit(DataTypes.BIGINT())).build();
        }
    }
}
