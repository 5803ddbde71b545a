package flinkcompat.planner;

import java.util.*;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.apache.commons.lang3.StringUtils;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.sink.abilities.*;
import org.apache.flink.table.connector.source.*;
import org.apache.flink.table.connector.source.abilities.*;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.*;
import org.apache.flink.table.functions.LookupFunction;
import org.apache.flink.table.module.Module;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.RowKind;

/** Sources and sinks in place of connectors and formats whose jars are absent. A module is asked before any factory. */
final class StandIns implements Module, DynamicTableSourceFactory, DynamicTableSinkFactory {
    private static final Pattern CHANGES = Pattern.compile(
        "cdc|upsert|debezium|canal|maxwell|ogg|binlog|logminer|changelog|paimon|hudi|fluss");

    /** By table, what is absent. */
    final Map<String, String> used = new TreeMap<>();
    /** The tables among them that rows are looked up in: whether that is asynchronous is not known. */
    final Set<String> lookedUp = new TreeSet<>();

    private final String changelog;
    private final boolean pushDown;

    /**
     * @param changelog which rows sources bring: {@code all} kinds, {@code insert}s, or a {@code guess} by their names
     * @param pushDown whether sources take projections and watermarks over
     */
    StandIns(String changelog, boolean pushDown) {
        this.changelog = changelog;
        this.pushDown = pushDown;
    }

    @Override public Optional<DynamicTableSourceFactory> getTableSourceFactory() { return Optional.of(this); }
    @Override public Optional<DynamicTableSinkFactory> getTableSinkFactory() { return Optional.of(this); }
    @Override public String factoryIdentifier() { return "flinkcompat-stand-in"; }
    @Override public Set<ConfigOption<?>> requiredOptions() { return Set.of(); }
    @Override public Set<ConfigOption<?>> optionalOptions() { return Set.of(); }

    @Override public DynamicTableSource createDynamicTableSource(Context context) {
        return realOr(DynamicTableSourceFactory.class, context, real -> real.createDynamicTableSource(context), () ->
            pushDown ? new PushedSource(context) : new TableSource(context));
    }

    @Override public DynamicTableSink createDynamicTableSink(Context context) {
        boolean key = context.getCatalogTable().getResolvedSchema().getPrimaryKey().isPresent();
        return realOr(DynamicTableSinkFactory.class, context, real -> real.createDynamicTableSink(context), () ->
            new TableSink(key, metadata(context)));
    }

    private <F extends DynamicTableFactory, T> T realOr(
            Class<F> type, Context context, Function<F, T> real, Supplier<T> standIn) {
        String connector = context.getCatalogTable().getOptions().get("connector");
        String absent = "a table without connector";
        if (connector != null) {
            try {
                return real.apply(FactoryUtil.discoverFactory(context.getClassLoader(), type, connector));
            } catch (ValidationException e) {
                absent = absent(e, context.getClassLoader());
                if (absent == null) throw e;
            }
        }
        used.put(name(context), absent);
        return standIn.get();
    }

    /** The identifier of a factory that no jar holds; null for other errors, and where one of another kind has it. */
    private static String absent(Throwable error, ClassLoader loader) {
        for (Throwable e = error; e != null; e = e.getCause()) {
            String message = String.valueOf(e.getMessage());
            if (message.contains("Could not find any factory for identifier")) {
                String identifier = StringUtils.substringBetween(message, "identifier '", "'");
                return isKnown(identifier, loader) ? null : identifier;
            }
        }
        return null;
    }

    private static boolean isKnown(String identifier, ClassLoader loader) {
        try {
            return FactoryUtil.discoverFactory(loader, Factory.class, identifier) != null;
        } catch (ValidationException e) {
            return !e.getMessage().contains("Could not find any factory");
        }
    }

    private ChangelogMode changes(Context context) {
        Map<String, String> options = context.getCatalogTable().getOptions();
        String names = (options.get("connector") + " " + options.get("format") + " " + options.get("value.format"))
            .toLowerCase(Locale.ROOT);
        boolean key = context.getCatalogTable().getResolvedSchema().getPrimaryKey().isPresent();
        if (changelog.equals("insert") || changelog.equals("guess") && !CHANGES.matcher(names).find()) {
            return ChangelogMode.insertOnly();
        }
        return key && names.contains("upsert") ? ChangelogMode.upsert() : ChangelogMode.all();
    }

    private static Map<String, DataType> metadata(Context context) {
        Map<String, DataType> declared = new LinkedHashMap<>();
        for (Column column : context.getCatalogTable().getResolvedSchema().getColumns()) {
            if (column instanceof Column.MetadataColumn metadata) {
                declared.put(metadata.getMetadataKey().orElse(column.getName()), column.getDataType());
            }
        }
        return declared;
    }

    private static String name(Context context) { return context.getObjectIdentifier().asSummaryString(); }

    private class TableSource implements ScanTableSource, LookupTableSource, SupportsReadingMetadata {
        final DynamicTableFactory.Context context;

        TableSource(DynamicTableFactory.Context context) { this.context = context; }

        @Override public ChangelogMode getChangelogMode() { return changes(context); }

        @Override public ScanRuntimeProvider getScanRuntimeProvider(ScanContext scan) {
            Source<RowData, ?, ?> neverRead =
                Reflected.answering(Source.class, Map.of("getBoundedness", Boundedness.CONTINUOUS_UNBOUNDED));
            return SourceProvider.of(neverRead);
        }

        @Override public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext lookup) {
            lookedUp.add(name(context));
            return LookupFunctionProvider.of(new NoLookup());
        }

        @Override public Map<String, DataType> listReadableMetadata() { return metadata(context); }
        @Override public void applyReadableMetadata(List<String> keys, DataType produced) {}
        @Override public DynamicTableSource copy() { return new TableSource(context); }
        @Override public String asSummaryString() { return "stand-in"; }
    }

    private final class PushedSource extends TableSource
            implements SupportsProjectionPushDown, SupportsWatermarkPushDown {
        PushedSource(DynamicTableFactory.Context context) { super(context); }

        @Override public boolean supportsNestedProjection() { return false; }
        @Override public void applyProjection(int[][] fields, DataType produced) {}
        @Override public void applyWatermark(WatermarkStrategy<RowData> strategy) {}
        @Override public DynamicTableSource copy() { return new PushedSource(context); }
    }

    /** With a primary key it takes changes by key, which an upsert sink does. */
    private record TableSink(boolean key, Map<String, DataType> metadata)
            implements DynamicTableSink, SupportsWritingMetadata, SupportsPartitioning, SupportsOverwrite {
        @Override public ChangelogMode getChangelogMode(ChangelogMode asked) {
            if (!key) return asked;
            ChangelogMode.Builder taken = ChangelogMode.newBuilder();
            asked.getContainedKinds().forEach(kind -> { if (kind != RowKind.UPDATE_BEFORE) taken.addContainedKind(kind); });
            return taken.build();
        }

        @Override public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            return SinkV2Provider.of(new DiscardingSink<>());
        }

        @Override public Map<String, DataType> listWritableMetadata() { return metadata; }
        @Override public void applyWritableMetadata(List<String> keys, DataType consumed) {}
        @Override public void applyStaticPartition(Map<String, String> partition) {}
        @Override public void applyOverwrite(boolean overwrite) {}
        @Override public DynamicTableSink copy() { return this; }
        @Override public String asSummaryString() { return "stand-in"; }
    }

    /** A lookup that is never made. */
    public static final class NoLookup extends LookupFunction {
        @Override public Collection<RowData> lookup(RowData key) { throw new UnsupportedOperationException(); }
    }
}
