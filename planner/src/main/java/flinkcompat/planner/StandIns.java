package flinkcompat.planner;

import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.regex.*;
import java.util.stream.*;
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

/**
 * Sources and sinks in place of connectors and formats whose jars are absent. A module is asked before any factory.
 *
 * <p>The variant of a request: {@code changelog} of sources ({@code all}, {@code insert}, or a {@code guess} by names),
 * {@code push_down} of projections and watermarks, {@code async} lookups, and the changes that a {@code sink} with a
 * primary key takes: as {@code asked} without the rows before an update, {@code all} of these, or {@code upsert}.
 *
 * <p>{@code connectors} names by connector, or by connector and format, what is known in place of the variant: whether
 * a {@code source} takes over {@code projection} and {@code watermark}, and its {@code changelog} ({@code insert}, {@code
 * all}, or {@code upsert} as Kafka declares it); {@code sink}; and the option without which a {@code lookup} is
 * synchronous, {@code ""} where it always is.
 */
record StandIns(JsonNode variant, Map<String, String> used, Set<String> guessed, Set<String> lookups)
        implements Module, DynamicTableSourceFactory, DynamicTableSinkFactory {
    static final String NAME = "flinkcompat";
    private static final String ASSUMED = "flinkcompat-assumed";
    private static final Pattern NO_FACTORY = Pattern.compile(
        "Could not find any (?:factory for identifier|jdbc factory .* url) '(jdbc:\\w+|[^']*)");
    private static final String OF_TESTS = "values"; // the connector of Flink's own tests, whose options name its changes
    private static final Map<String, RowKind> KINDS = Map.of(
        "I", RowKind.INSERT, "UB", RowKind.UPDATE_BEFORE, "UA", RowKind.UPDATE_AFTER, "D", RowKind.DELETE);
    private static final Pattern CHANGES = Pattern.compile(
        "cdc|upsert|debezium|canal|maxwell|ogg|binlog|logminer|changelog|paimon|hudi|fluss");

    /** Notes what is absent by table, the kinds whose abilities are guessed, and the tables that are looked up in. */
    StandIns(JsonNode variant) { this(variant, new TreeMap<>(), new TreeSet<>(), new TreeSet<>()); }

    @Override public Optional<DynamicTableSourceFactory> getTableSourceFactory() { return Optional.of(this); }
    @Override public Optional<DynamicTableSinkFactory> getTableSinkFactory() { return Optional.of(this); }
    @Override public String factoryIdentifier() { return "flinkcompat-stand-in"; }
    @Override public Set<ConfigOption<?>> requiredOptions() { return Set.of(); }
    @Override public Set<ConfigOption<?>> optionalOptions() { return Set.of(); }

    @Override public DynamicTableSource createDynamicTableSource(Context context) {
        return realOr(DynamicTableSourceFactory.class, context, real -> real.createDynamicTableSource(context), this::source);
    }

    @Override public DynamicTableSink createDynamicTableSink(Context context) {
        return realOr(DynamicTableSinkFactory.class, context, real -> real.createDynamicTableSink(context), this::sink);
    }

    private <F extends DynamicTableFactory, T> T realOr(
            Class<F> type, Context context, Function<F, T> real, Function<Context, T> standIn) {
        String connector = context.getCatalogTable().getOptions().get("connector");
        if (ASSUMED.equals(connector)) return standIn.apply(context);
        String absent = "a table without connector";
        try {
            if (connector != null) {
                return real.apply(FactoryUtil.discoverFactory(context.getClassLoader(), type, connector));
            }
        } catch (ValidationException | IllegalStateException e) {
            absent = absent(e, context.getClassLoader());
            if (absent == null) throw e;
        }
        used.put(context.getObjectIdentifier().asSummaryString(), absent);
        return standIn.apply(context);
    }

    /** The identifier of an absent factory or JDBC dialect; null for other errors, or if another kind of factory has it. */
    private static String absent(Throwable error, ClassLoader loader) {
        Matcher identifier = NO_FACTORY.matcher(Main.chain(error).toString());
        if (!identifier.find()) return null;
        try {
            FactoryUtil.discoverFactory(loader, Factory.class, identifier.group(1));
            return null;
        } catch (ValidationException e) {
            return NO_FACTORY.matcher(e.getMessage()).find() ? identifier.group(1) : null;
        }
    }

    private DynamicTableSource source(Context context) {
        JsonNode source = known(context).path("source");
        if (source.isMissingNode()) guessed.add("source");
        Source<RowData, ?, ?> neverRead = Reflected.answering(
            Map.of("getBoundedness", Boundedness.CONTINUOUS_UNBOUNDED), Source.class);
        LookupTableSource.LookupRuntimeProvider either = Reflected.answering(
            Map.of("createLookupFunction", new NoLookup(), "createAsyncLookupFunction", new NoAsyncLookup()),
            LookupFunctionProvider.class, AsyncLookupFunctionProvider.class);
        Function<Object, Object> lookup = asked -> {
            if (isSynchronous(context)) return LookupFunctionProvider.of(new NoLookup());
            lookups.add(context.getObjectIdentifier().asSummaryString());
            return variant.path("async").asBoolean() ? either : LookupFunctionProvider.of(new NoLookup());
        };
        boolean pushes = variant.path("push_down").asBoolean();
        List<Class<?>> abilities = new ArrayList<>(List.of(
            ScanTableSource.class, LookupTableSource.class, SupportsReadingMetadata.class));
        if (source.path("projection").asBoolean(pushes)) abilities.add(SupportsProjectionPushDown.class);
        if (source.path("watermark").asBoolean(pushes)) abilities.add(SupportsWatermarkPushDown.class);
        return Reflected.answering(Map.of(
            "getChangelogMode", changes(context), "getScanRuntimeProvider", SourceProvider.of(neverRead),
            "getLookupRuntimeProvider", lookup, "listReadableMetadata", metadata(context), "applyProjection", true,
            "asSummaryString", "stand-in"), abilities.toArray(Class<?>[]::new));
    }

    private JsonNode known(Context context) {
        Map<String, String> options = context.getCatalogTable().getOptions();
        String connector = options.getOrDefault("connector", "");
        String format = options.getOrDefault("value.format", options.getOrDefault("format", ""));
        if (connector.equals(OF_TESTS)) return ofTests(options);
        JsonNode known = variant.path("connectors");
        return known.path(known.has(connector) ? connector : connector + "/" + format);
    }

    private static JsonNode ofTests(Map<String, String> options) {
        String pushes = options.getOrDefault("enable-watermark-push-down", "false");
        Map<String, Object> source = Map.of(
            "changelog", options.getOrDefault("changelog-mode", "I"), "watermark", Boolean.parseBoolean(pushes),
            "projection", Boolean.parseBoolean(options.getOrDefault("enable-projection-push-down", "true")));
        String sink = Boolean.parseBoolean(options.get("sink-insert-only")) ? "I" : "asked";
        return Main.JSON.valueToTree(Map.of(
            "source", source, "sink", options.getOrDefault("sink-changelog-mode-enforced", sink)));
    }

    private static ChangelogMode of(String kinds) {
        ChangelogMode.Builder mode = ChangelogMode.newBuilder();
        Stream.of(kinds.split(",")).map(each -> KINDS.get(each.trim())).forEach(mode::addContainedKind);
        return mode.build();
    }

    private boolean isSynchronous(Context context) {
        JsonNode option = known(context).path("lookup");
        return option.isTextual() && !Boolean.parseBoolean(context.getCatalogTable().getOptions().get(option.asText()));
    }

    private DynamicTableSink sink(Context context) {
        JsonNode known = known(context).path("sink");
        if (hasKey(context) && known.isMissingNode()) guessed.add("sink");
        String takes = hasKey(context) ? known.asText(variant.path("sink").asText("asked"))
            : KINDS.containsKey(known.asText().split(",")[0]) ? known.asText() : "all";
        Function<ChangelogMode, ChangelogMode> mode = asked -> {
            if (takes.equals("all")) return asked;
            if (KINDS.containsKey(takes.split(",")[0])) return of(takes);
            ChangelogMode.Builder taken = ChangelogMode.newBuilder();
            Set<RowKind> kinds = (takes.equals("upsert") ? ChangelogMode.all() : asked).getContainedKinds();
            kinds.stream().filter(kind -> kind != RowKind.UPDATE_BEFORE).forEach(taken::addContainedKind);
            return taken.build();
        };
        List<Class<?>> abilities = new ArrayList<>(List.of(
            DynamicTableSink.class, SupportsWritingMetadata.class, SupportsPartitioning.class, SupportsOverwrite.class));
        Reflected.type(SupportsOverwrite.class.getPackageName() + ".SupportsBucketing").ifPresent(abilities::add);
        Set<?> buckets = Reflected.type(Column.class.getPackageName() + ".TableDistribution$Kind")
            .map(kinds -> Set.of(kinds.getEnumConstants())).orElse(Set.of()); // both from 1.20 on
        return Reflected.answering(Map.of(
            "getChangelogMode", mode, "getSinkRuntimeProvider", SinkV2Provider.of(new DiscardingSink<>()),
            "listWritableMetadata", metadata(context), "asSummaryString", "stand-in",
            "listAlgorithms", buckets, "requiresBucketCount", false),
            abilities.toArray(Class<?>[]::new));
    }

    private ChangelogMode changes(Context context) {
        Map<String, String> options = context.getCatalogTable().getOptions();
        String changelog = known(context).path("source").path("changelog").asText(variant.path("changelog").asText("guess"));
        // Without inserts and with whole deletions: Flink since 2.1 may leave out the ChangelogNormalize of such a source.
        if (KINDS.containsKey(changelog.split(",")[0])) return of(changelog);
        if (changelog.equals("upsert")) {
            return ChangelogMode.newBuilder().addContainedKind(RowKind.UPDATE_AFTER).addContainedKind(RowKind.DELETE).build();
        }
        String names = (options.get("connector") + " " + options.get("format") + " " + options.get("value.format"))
            .toLowerCase(Locale.ROOT);
        if (changelog.equals("insert") || changelog.equals("guess") && !CHANGES.matcher(names).find()) return ChangelogMode.insertOnly();
        return hasKey(context) && names.contains("upsert") ? ChangelogMode.upsert() : ChangelogMode.all();
    }

    private static boolean hasKey(Context context) {
        return context.getCatalogTable().getResolvedSchema().getPrimaryKey().isPresent();
    }

    private static Map<String, DataType> metadata(Context context) {
        return context.getCatalogTable().getResolvedSchema().getColumns().stream()
            .filter(Column.MetadataColumn.class::isInstance).map(Column.MetadataColumn.class::cast)
            .collect(Collectors.toMap(each -> each.getMetadataKey().orElse(each.getName()), Column::getDataType));
    }

    public static final class NoLookup extends LookupFunction {
        @Override public Collection<RowData> lookup(RowData key) { return List.of(); }
    }

    public static final class NoAsyncLookup extends AsyncLookupFunction {
        @Override public CompletableFuture<Collection<RowData>> asyncLookup(RowData key) { return null; }
    }
}
