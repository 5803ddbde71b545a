package flinkcompat.planner;

import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.apache.commons.lang3.StringUtils;
import org.apache.commons.lang3.exception.ExceptionUtils;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.connector.source.*;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.*;
import org.apache.flink.table.connector.sink.abilities.*;
import org.apache.flink.table.connector.source.*;
import org.apache.flink.table.connector.source.abilities.*;
import org.apache.flink.table.connector.source.lookup.*;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.*;
import org.apache.flink.table.functions.*;
import org.apache.flink.table.module.Module;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.RowKind;

/** Sources and sinks in place of connectors and formats whose jars are absent. A module is asked before any factory. */
final class StandIns implements Module, DynamicTableSourceFactory, DynamicTableSinkFactory {
    static final String NAME = "flinkcompat";
    private static final String NO_FACTORY = "Could not find any factory for identifier";
    private static final Pattern CHANGES = Pattern.compile(
        "cdc|upsert|debezium|canal|maxwell|ogg|binlog|logminer|changelog|paimon|hudi|fluss");

    /** By table, what is absent. */
    final Map<String, String> used = new TreeMap<>();
    /** The kinds of stand-ins whose abilities are guessed: {@code source}, and {@code sink} with a primary key. */
    final Set<String> guessed = new TreeSet<>();
    /** The tables that rows are looked up in by a stand-in. */
    final Set<String> lookups = new TreeSet<>();

    private final String changelog;
    private final boolean pushDown;
    private final String sink;
    private final boolean async;

    /**
     * Takes the variant of a request.
     *
     * <p>{@code changelog}: sources bring rows of {@code all} kinds, {@code insert}s, or what their names let one
     * {@code guess}. {@code push_down}: they take over projections and watermarks. {@code sink}: those with a primary
     * key take what they are {@code asked} for without the rows before an update, the same with it ({@code all}), or
     * changes by key ({@code upsert}). {@code async}: lookups are asynchronous where Flink may choose.
     */
    StandIns(JsonNode request) {
        changelog = request.path("changelog").asText("guess");
        pushDown = request.path("push_down").asBoolean(false);
        sink = request.path("sink").asText("asked");
        async = request.path("async").asBoolean(false);
    }

    @Override public Optional<DynamicTableSourceFactory> getTableSourceFactory() { return Optional.of(this); }
    @Override public Optional<DynamicTableSinkFactory> getTableSinkFactory() { return Optional.of(this); }
    @Override public String factoryIdentifier() { return "flinkcompat-stand-in"; }
    @Override public Set<ConfigOption<?>> requiredOptions() { return Set.of(); }
    @Override public Set<ConfigOption<?>> optionalOptions() { return Set.of(); }

    @Override public DynamicTableSource createDynamicTableSource(Context context) {
        return realOr(DynamicTableSourceFactory.class, context, real -> real.createDynamicTableSource(context), () -> {
            guessed.add("source");
            return pushDown ? new PushedSource(context) : new TableSource(context);
        });
    }

    @Override public DynamicTableSink createDynamicTableSink(Context context) {
        return realOr(DynamicTableSinkFactory.class, context, real -> real.createDynamicTableSink(context), () -> {
            if (hasKey(context)) guessed.add("sink");
            return new TableSink(hasKey(context) ? sink : "all", metadata(context));
        });
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
        used.put(context.getObjectIdentifier().asSummaryString(), absent);
        return standIn.get();
    }

    /** The identifier of a factory that no jar holds; null for other errors, and where one of another kind has it. */
    private static String absent(Throwable error, ClassLoader loader) {
        String message = ExceptionUtils.getThrowableList(error).stream().map(Throwable::getMessage)
            .filter(each -> StringUtils.contains(each, NO_FACTORY)).findFirst().orElse(null);
        if (message == null) return null;
        String identifier = StringUtils.substringBetween(message, "identifier '", "'");
        try {
            FactoryUtil.discoverFactory(loader, Factory.class, identifier);
            return null;
        } catch (ValidationException e) {
            return e.getMessage().contains(NO_FACTORY) ? identifier : null;
        }
    }

    private ChangelogMode changes(Context context) {
        Map<String, String> options = context.getCatalogTable().getOptions();
        String names = (options.get("connector") + " " + options.get("format") + " " + options.get("value.format"))
            .toLowerCase(Locale.ROOT);
        if (changelog.equals("insert") || changelog.equals("guess") && !CHANGES.matcher(names).find()) {
            return ChangelogMode.insertOnly();
        }
        return hasKey(context) && names.contains("upsert") ? ChangelogMode.upsert() : ChangelogMode.all();
    }

    private static boolean hasKey(Context context) {
        return context.getCatalogTable().getResolvedSchema().getPrimaryKey().isPresent();
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
            lookups.add(context.getObjectIdentifier().asSummaryString());
            return async ? new EitherLookup() : LookupFunctionProvider.of(new NoLookup());
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

    private record TableSink(String takes, Map<String, DataType> metadata)
            implements DynamicTableSink, SupportsWritingMetadata, SupportsPartitioning, SupportsOverwrite {
        @Override public ChangelogMode getChangelogMode(ChangelogMode asked) {
            if (takes.equals("all")) return asked;
            ChangelogMode.Builder taken = ChangelogMode.newBuilder();
            Set<RowKind> kinds = (takes.equals("upsert") ? ChangelogMode.all() : asked).getContainedKinds();
            kinds.stream().filter(kind -> kind != RowKind.UPDATE_BEFORE).forEach(taken::addContainedKind);
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

    /** A lookup that is never made, and that Flink may make either way. */
    private static final class EitherLookup implements LookupFunctionProvider, AsyncLookupFunctionProvider {
        @Override public LookupFunction createLookupFunction() { return new NoLookup(); }
        @Override public AsyncLookupFunction createAsyncLookupFunction() { return new NoAsyncLookup(); }
    }

    public static final class NoLookup extends LookupFunction {
        @Override public Collection<RowData> lookup(RowData key) { throw new UnsupportedOperationException(); }
    }

    public static final class NoAsyncLookup extends AsyncLookupFunction {
        @Override public CompletableFuture<Collection<RowData>> asyncLookup(RowData key) {
            throw new UnsupportedOperationException();
        }
    }
}
