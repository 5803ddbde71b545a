import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.jar.JarFile;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.FallbackKey;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.description.HtmlFormatter;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.streaming.api.transformations.SinkTransformation;
import org.apache.flink.streaming.api.transformations.SourceTransformation;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableConfig;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.api.internal.TableEnvironmentImpl;
import org.apache.flink.table.catalog.CatalogTable;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.catalog.ObjectIdentifier;
import org.apache.flink.table.catalog.ResolvedCatalogTable;
import org.apache.flink.table.catalog.ResolvedSchema;
import org.apache.flink.table.catalog.UniqueConstraint;
import org.apache.flink.table.connector.sink.abilities.SupportsWritingMetadata;
import org.apache.flink.table.connector.source.abilities.SupportsReadingMetadata;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.Factory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.operations.ModifyOperation;
import org.apache.flink.table.operations.Operation;

/**
 * Prints the options of the Flink on the class path, and asks it about values.
 *
 * <p>{@code list} prints rows of tab-separated fields, {@code tables} those of connectors and formats alone; the others read rows and print an
 * answer a row, after whatever Flink itself prints.
 */
@SuppressWarnings("deprecation")
public class FlinkOptions {
    private static final List<String> NOT_OF_JOBS =
            List.of("connector", "connectors", "formats", "table.connector", "table.factories", "table.filesystem");

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "list" -> list(settings().values(), factories());
            case "tables" -> tables(Arrays.copyOfRange(arguments, 1, arguments.length));
            case "parse" -> parse();
            case "metadata" -> metadata();
            case "run" -> run();
            case "parts" -> parts();
        }
        System.out.flush();
        System.exit(0);
    }

    /** Rows of settings, of zones, and of the options of connectors and formats. */
    private static void list(Collection<ConfigOption<?>> settings, List<Factory> factories) throws Exception {
        for (ConfigOption<?> option : settings) {
            print("setting", "", option, false, "");
        }
        ZoneId.getAvailableZoneIds().stream().sorted().forEach(zone -> System.out.println("zone\t" + zone));
        for (Factory factory : factories) {
            String kind = isFormat(factory) ? "format" : "table";
            for (ConfigOption<?> option : optionsOf(factory).values()) {
                print(kind, factory.factoryIdentifier(), option, requires(factory, option), uses(factory));
            }
        }
    }

    /**
     * Rows of connectors and formats alone; {@code CONNECTOR=CLASS} names a class that declares more options of one.
     */
    private static void tables(String... classes) throws Exception {
        list(List.of(), factories());
        for (String each : classes) {
            String[] named = each.split("=");
            for (Field field : Class.forName(named[1]).getFields()) {
                if (Modifier.isStatic(field.getModifiers()) && field.getType().getSimpleName().equals("ConfigOption")) {
                    print("table", named[0], flinks(field.get(null)), false, "source sink");
                }
            }
        }
    }

    /** An option as Flink's own class has it: some connectors bring a copy of that class. */
    private static ConfigOption<?> flinks(Object option) throws Exception {
        if (option instanceof ConfigOption<?> own) {
            return own;
        }
        var key = ConfigOptions.key((String) option.getClass().getMethod("key").invoke(option));
        var of = option.getClass().getDeclaredField("clazz");
        of.setAccessible(true);
        var type = (Class<?>) of.get(option);
        Object preset = option.getClass().getMethod("defaultValue").invoke(option);
        var older = new ArrayList<String>();
        for (Object each : (Iterable<?>) option.getClass().getMethod("fallbackKeys").invoke(option)) {
            older.add((String) each.getClass().getMethod("getKey").invoke(each));
        }
        return typed(key, type, preset).withFallbackKeys(older.toArray(String[]::new));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static ConfigOption<?> typed(ConfigOptions.OptionBuilder key, Class<?> type, Object preset) {
        var builder = switch (type.getSimpleName()) {
            case "Boolean" -> key.booleanType();
            case "Integer" -> key.intType();
            case "Long" -> key.longType();
            case "Double" -> key.doubleType();
            case "Duration" -> key.durationType();
            case "MemorySize" -> key.memoryType();
            default -> type.isEnum() ? key.enumType((Class) type) : key.stringType();
        };
        if (preset == null || preset instanceof Map) {
            return builder.noDefaultValue();
        }
        boolean same = type.isEnum() || preset.getClass().getName().startsWith("java.");
        Object value = same ? preset : MemorySize.parse(preset.toString());
        return ((ConfigOptions.TypedConfigOptionBuilder) builder).defaultValue(value);
    }

    private static boolean requires(Factory factory, ConfigOption<?> option) {
        try {
            return factory.requiredOptions().contains(option);
        } catch (Throwable missing) {
            return false;
        }
    }

    /** What a query may do with a table of it. */
    private static String uses(Factory factory) {
        return (factory instanceof DynamicTableSourceFactory ? "source " : "")
                + (factory instanceof DynamicTableSinkFactory ? "sink" : "");
    }

    /** Reads rows of a factory (empty for a setting), a key and a value; prints whether Flink parses the value. */
    private static void parse() throws Exception {
        Map<String, Map<String, ConfigOption<?>>> known = new HashMap<>();
        known.put("", settings());
        for (Factory factory : factories()) {
            known.computeIfAbsent(factory.factoryIdentifier(), name -> new TreeMap<>()).putAll(optionsOf(factory));
        }
        var rows = new BufferedReader(new InputStreamReader(System.in));
        for (String row; (row = rows.readLine()) != null; ) {
            String[] fields = row.split("\t", -1);
            System.out.println(answer(() -> {
                var given = Configuration.fromMap(Map.of(fields[1], fields[2]));
                given.getOptional(known.get(fields[0]).get(fields[1]));
                if (fields[1].endsWith("time-zone")) {
                    var tables = TableConfig.getDefault();
                    tables.addConfiguration(Configuration.fromMap(Map.of("table.local-time-zone", fields[2])));
                    tables.getLocalTimeZone();
                }
                return "taken";
            }));
            System.out.flush();
        }
    }

    /** Reads rows of the options of a table, key and value in turn; prints the metadata that it hands out and takes. */
    private static void metadata() throws Exception {
        var rows = new BufferedReader(new InputStreamReader(System.in));
        for (String row; (row = rows.readLine()) != null; ) {
            var options = pairs(row);
            System.out.println(answer(() -> {
                String of = options.remove("PRIMARY KEY");
                var column = Column.physical(of == null ? "a" : of, DataTypes.STRING().notNull());
                var key = of == null ? null : UniqueConstraint.primaryKey("key", List.of(of));
                var table = new ResolvedCatalogTable(
                        CatalogTable.fromProperties(options),
                        new ResolvedSchema(List.of(column), List.of(), key));
                var name = ObjectIdentifier.of("c", "d", "t");
                var loader = FlinkOptions.class.getClassLoader();
                var found = new TreeSet<String>();
                try {
                    var source = FactoryUtil.createDynamicTableSource(
                            null, name, table, Map.of(), new Configuration(), loader, false);
                    if (source instanceof SupportsReadingMetadata) {
                        ((SupportsReadingMetadata) source).listReadableMetadata().forEach(
                                (each, type) -> found.add("read\t" + each + "\t" + type.getLogicalType()));
                    }
                } catch (ValidationException isSinkAlone) {
                    System.err.println(root(isSinkAlone));
                }
                try {
                    var sink = FactoryUtil.createDynamicTableSink(
                            null, name, table, Map.of(), new Configuration(), loader, false);
                    if (sink instanceof SupportsWritingMetadata) {
                        ((SupportsWritingMetadata) sink).listWritableMetadata().forEach(
                                (each, type) -> found.add("write\t" + each + "\t" + type.getLogicalType()));
                    }
                } catch (ValidationException isSourceAlone) {
                    System.err.println(root(isSourceAlone));
                }
                return String.join("\t", found);
            }));
            System.out.flush();
        }
    }

    private static Map<String, String> pairs(String row) {
        String[] fields = row.split("\t", -1);
        var found = new HashMap<String, String>();
        for (int i = 0; i + 1 < fields.length; i += 2) {
            found.put(fields[i], fields[i + 1]);
        }
        return found;
    }

    /**
     * Reads rows of settings, key and value in turn; prints why Flink does not plan and run a job with them.
     *
     * <p>Keys that begin with {@code source:} or {@code sink:} are options of the job's tables.
     */
    private static void run() throws Exception {
        var out = System.out;
        var rows = new BufferedReader(new InputStreamReader(System.in));
        for (String row; (row = rows.readLine()) != null; ) {
            var given = pairs(row);
            out.println(answer(() -> {
                var source = new TreeMap<>(Map.of("connector", "datagen", "number-of-rows", "1"));
                var sink = new TreeMap<>(Map.of("connector", "blackhole"));
                var settings = Configuration.fromMap(Map.of("parallelism.default", "1"));
                given.forEach((key, value) -> {
                    if (key.startsWith("source:")) {
                        source.put(key.substring("source:".length()), value);
                    } else if (key.startsWith("sink:")) {
                        sink.put(key.substring("sink:".length()), value);
                    } else {
                        settings.setString(key, value);
                    }
                });
                boolean own = source.size() > 2 || sink.size() > 1;
                if (!source.get("connector").equals("datagen")) {
                    source.remove("number-of-rows");
                }
                var tables = TableEnvironment.create(
                        EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
                tables.executeSql("CREATE TABLE t (a INT, b TIMESTAMP_LTZ(3), WATERMARK FOR b AS b) " + with(source));
                tables.executeSql("CREATE TABLE s (a INT, b TIMESTAMP_LTZ(3)) " + with(sink));
                if (own) {
                    tables.explainSql("INSERT INTO s SELECT a, b FROM t");
                } else {
                    var job = tables.executeSql("INSERT INTO s SELECT a, MAX(b) FROM t GROUP BY a");
                    try {
                        job.await(20, TimeUnit.SECONDS);
                    } catch (TimeoutException runsWithoutAnEnd) {
                        job.getJobClient().get().cancel();
                    }
                }
                return "taken";
            }));
            out.flush();
        }
    }

    /** Reads rows of statements, of which the last is an INSERT; prints its sources and sinks and what they store. */
    private static void parts() throws Exception {
        var out = System.out;
        var rows = new BufferedReader(new InputStreamReader(System.in));
        for (String row; (row = rows.readLine()) != null; ) {
            String[] statements = row.split("\t");
            out.println(answer(() -> {
                var tables = (TableEnvironmentImpl) TableEnvironment.create(EnvironmentSettings.inStreamingMode());
                for (String each : Arrays.copyOf(statements, statements.length - 1)) {
                    tables.executeSql(each);
                }
                var job = new ArrayList<ModifyOperation>();
                for (Operation each : tables.getParser().parse(statements[statements.length - 1])) {
                    job.add((ModifyOperation) each);
                }
                var found = new TreeSet<String>();
                for (Transformation<?> root : tables.getPlanner().translate(job)) {
                    for (Transformation<?> each : root.getTransitivePredecessors()) {
                        if (each instanceof SourceTransformation<?, ?, ?> source) {
                            found.add(part("source", source.getSource()));
                        } else if (each instanceof SinkTransformation<?, ?> sink) {
                            found.add(part("sink", sink.getSink()));
                        }
                    }
                }
                return String.join("\t", found);
            }));
            out.flush();
        }
    }

    /** A source or sink by its class, the interfaces that say what it stores, and the serializers of that. */
    private static String part(String kind, Object part) {
        var found = new ArrayList<>(List.of(kind, part.getClass().getName()));
        for (String each : all(part.getClass())) {
            if (each.matches("(Supports|Stateful|TwoPhase|With(Pre|Post)).*")) {
                found.add(each);
            }
        }
        for (String each : List.of(
                "getSplitSerializer", "getEnumeratorCheckpointSerializer", "getWriterStateSerializer",
                "getCommittableSerializer")) {
            try {
                Method method = part.getClass().getMethod(each);
                method.setAccessible(true);
                var serializer = (SimpleVersionedSerializer<?>) method.invoke(part);
                found.add(each.substring(3) + "=" + serializer.getClass().getName() + ":" + serializer.getVersion());
            } catch (NoSuchMethodException notOne) {
                continue;
            } catch (Throwable unreadable) {
                found.add(each.substring(3) + "=" + root(unreadable).replaceAll("\\s", " "));
            }
        }
        return String.join("|", found);
    }

    private static String with(Map<String, String> options) {
        return options.entrySet().stream()
                .map(each -> "'" + each.getKey() + "' = '" + each.getValue().replace("'", "''") + "'")
                .collect(Collectors.joining(", ", "WITH (", ")"));
    }

    private static String answer(Callable<String> asked) {
        try {
            return "answer\t" + asked.call();
        } catch (Throwable refused) {
            return ("answer\trefused\t" + root(refused)).replaceAll("[\n\r]", " ");
        }
    }

    private static String root(Throwable refused) {
        return refused.getCause() == null || refused.getCause() == refused
                ? refused.getClass().getSimpleName() + ": " + refused.getMessage()
                : root(refused.getCause());
    }

    /** By key, every option that a public class of Flink's own declares for jobs and clusters. */
    private static Map<String, ConfigOption<?>> settings() throws Exception {
        Map<String, ConfigOption<?>> found = new TreeMap<>();
        for (String name : optionClasses()) {
            String part = name.substring("org.apache.flink.".length());
            if (NOT_OF_JOBS.stream().anyMatch(each -> part.startsWith(each + "."))) {
                continue;
            }
            for (ConfigOption<?> option : declared(name)) {
                found.putIfAbsent(option.key(), option);
            }
        }
        return found;
    }

    /** Names of public option classes; of the planner's own classes those that mention an option anywhere. */
    private static Collection<String> optionClasses() throws Exception {
        var names = new TreeSet<String>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!path.endsWith(".jar")) {
                continue;
            }
            try (var jar = new JarFile(path)) {
                for (var entry : Collections.list(jar.entries())) {
                    String name = entry.getName();
                    if (name.contains("/shaded/")) {
                        continue;
                    }
                    if (name.matches("org/apache/flink/.*(Options?|Configuration)(Internal)?\\.class")
                            || (name.matches("org/apache/flink/table/planner/[^$]*\\.class")
                                    && new String(jar.getInputStream(entry).readAllBytes(), ISO_8859_1)
                                            .contains("/ConfigOption;"))) {
                        names.add(name.replace('/', '.').replaceAll("\\.class$", ""));
                    }
                }
            }
        }
        return names;
    }

    private static List<ConfigOption<?>> declared(String name) {
        var found = new ArrayList<ConfigOption<?>>();
        try {
            var type = Class.forName(name);
            for (Field field : Modifier.isPublic(type.getModifiers()) ? type.getFields() : new Field[0]) {
                if (Modifier.isStatic(field.getModifiers()) && ConfigOption.class.equals(field.getType())) {
                    found.add((ConfigOption<?>) field.get(null));
                }
            }
            for (Method method : type.getMethods()) { // a Scala object's
                if (Modifier.isStatic(method.getModifiers())
                        && ConfigOption.class.equals(method.getReturnType())
                        && method.getParameterCount() == 0) {
                    found.add((ConfigOption<?>) method.invoke(null));
                }
            }
        } catch (Throwable missing) {
            if (!(missing instanceof ClassNotFoundException)) {
                System.err.println(name + ": " + missing);
            }
        }
        return found;
    }

    private static List<Factory> factories() {
        var found = new ArrayList<Factory>();
        var loaded = ServiceLoader.load(Factory.class).iterator();
        while (true) {
            try {
                if (!loaded.hasNext()) {
                    return found;
                }
                Factory factory = loaded.next();
                if (Arrays.stream(all(factory.getClass())).anyMatch(each -> each.matches(
                        "Dynamic.*Factory|(De)?SerializationFormatFactory|(De|En)codingFormatFactory|Bulk.*FormatFactory|"
                                + "FileSystemFormatFactory"))) {
                    found.add(factory);
                }
            } catch (Throwable missing) {
                System.err.println(missing);
            }
        }
    }

    private static String[] all(Class<?> type) {
        var names = new TreeSet<String>();
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Class<?> one : each.getInterfaces()) {
                names.add(one.getSimpleName());
                names.addAll(List.of(all(one)));
            }
        }
        return names.toArray(String[]::new);
    }

    private static boolean isFormat(Factory factory) {
        return Arrays.stream(all(factory.getClass())).noneMatch(each -> each.startsWith("DynamicTable"));
    }

    /** By key, what a connector or format takes; options that name a column have a # in the place of its name. */
    private static Map<String, ConfigOption<?>> optionsOf(Factory factory) {
        Map<String, ConfigOption<?>> found = new TreeMap<>();
        try {
            factory.requiredOptions().forEach(option -> found.put(option.key(), option));
            factory.optionalOptions().forEach(option -> found.put(option.key(), option));
        } catch (Throwable missing) {
            System.err.println(factory.getClass() + ": " + missing);
        }
        String own = factory.getClass().getName().replaceAll("(TableSource|TableSink)?Factory$", "ConnectorOptions");
        for (ConfigOption<?> option : declared(own)) {
            if (option.key().contains("#")) {
                found.put(option.key(), option);
            }
        }
        return found;
    }

    private static void print(String kind, String factory, ConfigOption<?> option, boolean required, String uses)
            throws Exception {
        Class<?> type = (Class<?>) read(option, "clazz");
        boolean isList = (boolean) read(option, "isList");
        String values = type.isEnum()
                ? Arrays.stream(type.getEnumConstants()).map(Object::toString).collect(Collectors.joining("|"))
                : type.getSimpleName();
        var fallback = new ArrayList<String>();
        for (FallbackKey key : option.fallbackKeys()) {
            fallback.add(key.getKey());
        }
        Object preset = option.defaultValue();
        System.out.println(String.join(
                "\t",
                kind,
                factory,
                option.key(),
                type.isEnum() ? "enum" : "class",
                values,
                String.valueOf(isList),
                preset == null || isList ? "" : text(preset),
                String.join(" ", fallback),
                String.valueOf(required),
                uses,
                namedIn(new HtmlFormatter().format(option.description()))));
    }

    /** The words that a description shows as code or in quotes. */
    private static String namedIn(String description) {
        return Pattern.compile("<code[^>]*>([^<]*)</code>|'([^']*)'|\"([^\"]*)\"")
                .matcher(description)
                .results()
                .map(each -> each.group().replaceAll("<[^>]*>|['\"\\s]", " ").trim())
                .distinct()
                .collect(Collectors.joining(" "));
    }

    private static String text(Object preset) {
        Object shown = preset instanceof java.time.Duration length ? length.toMillis() + " ms" : preset;
        return shown.toString().replaceAll("[\t\n\r]", " ");
    }

    private static Object read(ConfigOption<?> option, String name) throws Exception {
        Field field = ConfigOption.class.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(option);
    }
}
