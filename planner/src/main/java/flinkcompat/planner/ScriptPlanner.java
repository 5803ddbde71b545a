package flinkcompat.planner;

import java.util.*;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.commons.lang3.ArrayUtils;
import org.apache.commons.lang3.function.Failable;
import org.apache.commons.lang3.reflect.*;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.table.api.*;
import org.apache.flink.table.api.internal.TableEnvironmentImpl;
import org.apache.flink.table.catalog.*;
import org.apache.flink.table.delegation.*;
import org.apache.flink.table.expressions.Expression;
import org.apache.flink.table.functions.UserDefinedFunction;
import org.apache.flink.table.operations.*;
import org.apache.flink.table.operations.command.*;
import org.apache.flink.table.operations.ddl.*;
import org.apache.flink.table.planner.plan.ExecNodeGraphInternalPlan;
import org.apache.flink.table.planner.plan.nodes.exec.ExecNode;
import org.apache.flink.table.planner.plan.nodes.exec.visitor.*;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.utils.*;
import org.apache.flink.table.types.utils.TypeConversions;

/** One script in a session of its own: its statements in order, and every job that they would submit. */
final class ScriptPlanner {
    /** What is carried out: it changes nothing but the session, whose catalogs are all in memory. */
    private static final Pattern DECLARES = Pattern.compile(
        "((Create|Drop)(Table|View|CatalogFunction|TempSystemFunction|Database|Catalog|Model)|Use(Catalog|Database)"
        + "|Alter(Table(Change|Options|Schema|Rename)|View(As|Rename|Properties)|CatalogFunction)"
        + "|(Unl|L)oadModule|Nop)Operation");

    private final JsonNode request;
    private final Configuration initial = new Configuration();
    private final String querySink;
    private final TableEnvironmentImpl session;
    private final StandIns standIns;
    private final List<Object> jobs = new ArrayList<>();
    private final Set<Integer> lasting = new TreeSet<>();
    private final Set<Integer> replaced = new TreeSet<>(); // statements that need an absent class
    private final Map<String, String> catalogs = new TreeMap<>();

    ScriptPlanner(JsonNode request) {
        this.request = request;
        querySink = request.path("query_sink").asText();
        request.path("settings").fields().forEachRemaining(each ->
            initial.setString(each.getKey(), each.getValue().asText()));
        session = (TableEnvironmentImpl) TableEnvironment.create(initial);
        replaceDefaultCatalog();
        request.path("lasting").forEach(number -> lasting.add(number.asInt()));
        standIns = new StandIns(request);
        session.loadModule(StandIns.NAME, standIns);
        request.at("/assumed/replaced").forEach(number -> replaced.add(number.asInt()));
        request.at("/assumed/functions").fields().forEachRemaining(each -> assume(each.getKey(), each.getValue()));
    }

    @SuppressWarnings("unchecked")
    private void replaceDefaultCatalog() {
        var catalogs = (Map<String, Catalog>) Reflected.field(session.getCatalogManager(), "catalogs");
        String name = session.getCurrentCatalog();
        catalogs.put(name, new SessionCatalog(name, session.getCurrentDatabase()));
    }

    private void assume(String name, JsonNode function) {
        DataTypeFactory types = session.getCatalogManager().getDataTypeFactory();
        Map<String, DataType> results = new HashMap<>();
        function.path("types").fields().forEachRemaining(each ->
            results.put(each.getKey(), types.createDataType(each.getValue().asText())));
        UserDefinedFunction made = AssumedFunction.of(function.path("kind").asText(), results);
        if (name.contains("`")) session.createTemporaryFunction(name, made);
        else session.createTemporarySystemFunction(name, made);
    }

    void plan(Map<String, Object> answer) throws Exception {
        answer.putAll(Map.of("jobs", jobs, "catalogs", catalogs, "lasting", lasting, "stand_ins", standIns.used(),
            "guessed", standIns.guessed(), "lookups", standIns.lookups()));
        for (int number = 0; number < request.path("statements").size(); number++) {
            answer.put("statement", number);
            for (JsonNode assumed : request.at("/assumed/before").path(String.valueOf(number))) {
                carryOut(assumed.asText(), number);
            }
            if (!replaced.contains(number)) carryOut(request.path("statements").path(number).asText(), number);
        }
    }

    private void carryOut(String sql, int number) throws Exception {
        boolean lasts = lasting.contains(number);
        try {
            for (Operation operation : session.getParser().parse(sql)) carryOut(operation, number);
        } catch (Exception e) { // what it changes may be there elsewhere
            String wrong = "(?s).*(SqlParserException|Failed to execute ALTER).*";
            if (!lasts || Main.chain(e).toString().matches(wrong)) throw e;
        }
    }

    private void carryOut(Operation operation, int number) throws Exception {
        if (operation instanceof SetOperation set) {
            set.getKey().ifPresent(key -> session.getConfig().set(key, set.getValue().orElse("")));
        } else if (operation instanceof ResetOperation reset) {
            Configuration now = session.getConfig().getConfiguration();
            reset.getKey().map(Set::of).orElse(Set.copyOf(now.keySet())).forEach(now::removeKey);
            initial.toMap().forEach((key, value) -> now.setString(key, now.getString(key, value)));
        } else if (operation instanceof StatementSetOperation set) {
            job(set.getOperations());
        } else if (operation instanceof SinkModifyOperation insert) {
            job(List.of(insert));
        } else if (operation instanceof QueryOperation query) {
            job(List.of(inFrontOfASink(query)));
        } else if (operation instanceof CreateTableASOperation created) {
            lasting.add(number);
            session.executeInternal(created.getCreateTableOperation());
            job(List.of(created.toSinkModifyOperation(session.getCatalogManager())));
        } else if (operation instanceof ReplaceTableAsOperation replaced) {
            lasting.add(number);
            CreateTableOperation table = replaced.getCreateTableOperation();
            session.executeSql("DROP TABLE IF EXISTS " + table.getTableIdentifier().asSerializableString());
            session.executeInternal(table);
            job(List.of(replaced.toSinkModifyOperation(session.getCatalogManager())));
        } else if (operation instanceof CreateCatalogOperation catalog
                && !"generic_in_memory".equals(catalog.getProperties().get("type"))) {
            replace(catalog);
        } else if (operation instanceof UseModulesOperation use) {
            session.useModules(ArrayUtils.insert(0, use.getModuleNames().toArray(String[]::new), StandIns.NAME));
        } else if (DECLARES.matcher(operation.getClass().getSimpleName()).matches()) {
            session.executeInternal(operation);
        } else {
            lasting.add(number);
        }
    }

    /** A catalog in memory stands for any other one: creating those connects. */
    private void replace(CreateCatalogOperation catalog) {
        catalogs.put(catalog.getCatalogName(), String.valueOf(catalog.getProperties().get("type")));
        String first = catalog.getProperties().getOrDefault("default-database", "default");
        session.registerCatalog(catalog.getCatalogName(), new SessionCatalog(catalog.getCatalogName(), first) {
            @Override public boolean databaseExists(String name) { return true; } // which ones it holds is not known
            @Override public void createDatabase(String name, CatalogDatabase database, boolean ignoreIfExists) {}
        });
    }

    /** A catalog in memory, in which a table without connector may have one elsewhere. */
    private static class SessionCatalog extends GenericInMemoryCatalog {
        SessionCatalog(String name, String database) { super(name, database); }

        public boolean supportsManagedTable() { return false; } // asked up to 1.20
    }

    private void job(List<ModifyOperation> operations) throws Exception {
        Map<String, Object> job = new LinkedHashMap<>();
        Executor executor = (Executor) Reflected.field(session, "execEnv");
        StreamExecutionEnvironment own = StreamExecutionEnvironment.getExecutionEnvironment(initial);
        FieldUtils.writeField(executor, "executionEnvironment", own, true); // one that planned keeps what was set
        StreamGraph graph = (StreamGraph) executor.createPipeline(
            translated(operations, job), session.getConfig().getConfiguration(), "job");
        new JobGraphs(graph).describe(job, request.path("restore").path(jobs.size()).binaryValue());
        jobs.add(job);
    }

    /** The operators of a job, which is planned once and compiled on the way where Flink compiles it. */
    private List<Transformation<?>> translated(List<ModifyOperation> operations, Map<String, Object> job) {
        ExecNodeVisitor submitted = new AbstractExecNodeExactlyOnceVisitor() {
            @Override protected void visitNode(ExecNode<?> node) {
                node.setCompiled(false); // else its operators have uids
                showSchemas(node);
                visitInputs(node);
            }
        };
        ExecNodeGraphInternalPlan plan;
        try {
            plan = (ExecNodeGraphInternalPlan) session.getPlanner().compilePlan(operations);
            plan.getExecNodeGraph().getRootNodes().forEach(submitted::visit);
            job.put("plan", Main.JSON.readTree(written(plan)));
        } catch (Throwable e) {
            return session.getPlanner().translate(operations); // it says as well what is wrong with the script
        }
        return session.getPlanner().translatePlan(plan);
    }

    /** A compiled plan as JSON; 1.x wrote the plan's own text before its tables had a catalog. */
    private String written(ExecNodeGraphInternalPlan plan) throws ReflectiveOperationException {
        if (!EnvironmentInformation.getVersion().startsWith("1.")) return plan.asJsonString();
        Class<?> serde = Class.forName(ExecNode.class.getPackageName() + ".serde.JsonSerdeUtil");
        Object context = MethodUtils.invokeMethod(session.getPlanner(), "createSerdeContext");
        Object writer = MethodUtils.invokeStaticMethod(serde, "createObjectWriter", context);
        return (String) MethodUtils.invokeMethod(writer, "writeValueAsString", plan.getExecNodeGraph());
    }

    /** Gives the script's tables in a node a catalog: a compiled plan has no schema of a temporary one, without it. */
    private void showSchemas(Object part) {
        if (part instanceof ContextResolvedTable table && !table.getIdentifier().getObjectName().equals(querySink)) {
            Failable.run(() -> FieldUtils.writeField(table, "catalog", new GenericInMemoryCatalog("session"), true));
        }
        Stream.of("tableSourceSpec", "tableSinkSpec", "temporalTableSourceSpec", "temporalTable", "contextResolvedTable")
            .map(name -> Reflected.field(part, name)).filter(Objects::nonNull).forEach(this::showSchemas);
    }

    /** A bare query is planned into a sink of its own columns, which keeps nothing. */
    private ModifyOperation inFrontOfASink(QueryOperation query) {
        Schema.Builder columns = Schema.newBuilder();
        for (Column column : query.getResolvedSchema().getColumns()) {
            columns.column(column.getName(), column.getDataType().getLogicalType().copy(true).asSerializableString());
        }
        session.dropTemporaryTable(querySink);
        session.createTemporaryTable(querySink, TableDescriptor.forConnector("blackhole").schema(columns.build()).build());
        return (ModifyOperation) Reflected.field(
            withOneRowtime(session.createTable(query), query.getResolvedSchema()).insertInto(querySink), "operation");
    }

    /** A sink takes one rowtime; all others become times without a watermark. */
    private static Table withOneRowtime(Table rows, ResolvedSchema schema) {
        List<Column> times = schema.getColumns().stream()
            .filter(each -> LogicalTypeChecks.isRowtimeAttribute(each.getDataType().getLogicalType())).toList();
        if (times.size() < 2) return rows;
        return rows.select(schema.getColumns().stream().map(each -> {
            ApiExpression column = Expressions.$(each.getName());
            if (!times.contains(each) || each == times.get(0)) return column;
            DataType plain = TypeConversions.fromLogicalToDataType(
                LogicalTypeUtils.removeTimeAttributes(each.getDataType().getLogicalType()));
            return column.cast(plain).as(each.getName());
        }).toArray(Expression[]::new));
    }
}
