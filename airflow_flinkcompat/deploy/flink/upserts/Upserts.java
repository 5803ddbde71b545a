package flinkcompat;

import java.util.Map;

import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.connector.blackhole.table.BlackHoleTableSinkFactory;
import org.apache.flink.formats.json.debezium.DebeziumJsonFormatFactory;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.format.EncodingFormat;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.abilities.SupportsPartitioning;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.RowKind;

/**
 * Stand-ins for sinks that accept only upserts.
 *
 * <p>Flink's planner decides by the changelog mode of a sink whether it adds a SinkMaterializer, and whether an INSERT
 * may have an ON CONFLICT clause. The format {@code debezium-json} accepts retractions, and {@code blackhole} accepts
 * only inserts if the query emits only inserts. These stand-ins differ from both only in their changelog mode.
 */
public final class Upserts {

    private static final String NAME = "flinkcompat-upserts";
    private static final ChangelogMode MODE =
            ChangelogMode.newBuilder()
                    .addContainedKind(RowKind.INSERT)
                    .addContainedKind(RowKind.UPDATE_AFTER)
                    .addContainedKind(RowKind.DELETE)
                    .build();

    private Upserts() {}

    /** The format {@code debezium-json} for upserts, which stores rows. */
    public static final class Format extends DebeziumJsonFormatFactory {

        @Override
        public String factoryIdentifier() {
            return NAME;
        }

        @Override
        public EncodingFormat<SerializationSchema<RowData>> createEncodingFormat(
                DynamicTableFactory.Context context, ReadableConfig options) {
            EncodingFormat<SerializationSchema<RowData>> format = super.createEncodingFormat(context, options);
            return new EncodingFormat<SerializationSchema<RowData>>() {

                @Override
                public ChangelogMode getChangelogMode() {
                    return MODE;
                }

                @Override
                public SerializationSchema<RowData> createRuntimeEncoder(
                        DynamicTableSink.Context context, DataType type) {
                    return format.createRuntimeEncoder(context, type);
                }
            };
        }
    }

    /** The connector {@code blackhole} for upserts, which discards rows. */
    public static final class Connector extends BlackHoleTableSinkFactory {

        @Override
        public String factoryIdentifier() {
            return NAME;
        }

        @Override
        public DynamicTableSink createDynamicTableSink(Context context) {
            return new Sink(super.createDynamicTableSink(context));
        }
    }

    private static final class Sink implements DynamicTableSink, SupportsPartitioning {

        private final DynamicTableSink discarding;

        private Sink(DynamicTableSink discarding) {
            this.discarding = discarding;
        }

        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return MODE;
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(DynamicTableSink.Context context) {
            return discarding.getSinkRuntimeProvider(context);
        }

        @Override
        public void applyStaticPartition(Map<String, String> partition) {
            ((SupportsPartitioning) discarding).applyStaticPartition(partition);
        }

        @Override
        public DynamicTableSink copy() {
            return new Sink(discarding.copy());
        }

        @Override
        public String asSummaryString() {
            return discarding.asSummaryString();
        }
    }
}
