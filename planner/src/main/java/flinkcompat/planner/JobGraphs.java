package flinkcompat.planner;

import java.io.*;
import java.util.*;
import org.apache.commons.lang3.ClassUtils;
import org.apache.flink.api.connector.source.*;
import org.apache.flink.runtime.checkpoint.*;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.jobgraph.*;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.apache.flink.streaming.api.graph.*;
import org.apache.flink.streaming.api.operators.*;

/** A job as it would be submitted: its operators and their states, an empty savepoint, and a dry restore of another. */
final class JobGraphs {
    private static final String FLINKS = "org\\.apache\\.flink\\.(table\\.runtime|cep|streaming|runtime)\\..*";
    private static final String GENERATED = "StreamExec(Calc|Correlate|Expand).*";

    private final StreamGraph graph;
    private final Map<OperatorID, String> chains = new HashMap<>();
    private final List<OperatorState> empty = new ArrayList<>();
    private final Map<OperatorID, OperatorSubtaskState> stored = new HashMap<>();
    private final Map<String, Object> restores = new LinkedHashMap<>();

    JobGraphs(StreamGraph graph) { this.graph = graph; }

    /** Writes the job into {@code job}, and how its restore from a savepoint of Flink's own format would end. */
    void describe(Map<String, Object> job, byte[] savepoint) throws Exception {
        if (savepoint != null) {
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(savepoint));
            Checkpoints.loadCheckpointMetadata(in, Main.loader(), "memory").getOperatorStates()
                .forEach(state -> stored.put(state.getOperatorID(), state.getState(0)));
        }
        for (JobVertex vertex : graph.getJobGraph().getVertices()) {
            vertex.getOperatorIDs().forEach(pair -> chains.put(
                pair.getUserDefinedOperatorID().orElse(pair.getGeneratedOperatorID()), vertex.getID().toHexString()));
        }
        Map<Integer, byte[]> hashes = new StreamGraphHasherV2().traverseStreamGraphAndGenerateHashes(graph);
        List<?> operators = graph.getStreamNodes().stream().sorted(Comparator.comparing(StreamNode::getId))
            .map(node -> operator(node, hashes.get(node.getId()))).toList();
        ByteArrayOutputStream own = new ByteArrayOutputStream();
        Checkpoints.storeCheckpointMetadata(new CheckpointMetadata(1L, empty, List.of()), own);
        job.putAll(Map.of("operators", operators, "restores", restores, "savepoint", own.toByteArray()));
    }

    private Map<String, Object> operator(StreamNode node, byte[] hash) {
        String user = node.getUserHash();
        OperatorID id = new OperatorID(user == null ? hash : HexFormat.of().parseHex(user));
        StreamOperatorFactory<?> factory = node.getOperatorFactory();
        String kind = factory.getStreamOperatorClass(Main.loader()).getName();
        Map<String, Object> operator = new LinkedHashMap<>(Map.of(
            "node", node.getId(), "id", id.toHexString(), "name", node.getOperatorName(), "kind", kind,
            "inputs", node.getInEdges().stream().map(StreamEdge::getSourceId).toList(),
            "parallelism", node.getParallelism(),
            "max_parallelism", Reflected.field(node, "maxParallelism"))); // no public getter in 1.20
        operator.put("uid", node.getTransformationUID());
        operator.put("chain", chains.get(id));
        Object sink = Reflected.field(factory, "sink");
        Object function = Reflected.field(Reflected.field(factory, "operator"), "userFunction");
        String factoryName = factory.getClass().getSimpleName();
        String classes = kind + " " + ClassUtils.getName(function, "");
        boolean keyed = node.getStateKeySerializer() != null;
        boolean waits = classes.contains("AsyncWait");
        Object source = Reflected.field(factory, "source");
        operator.put("bounded", // a source function does not say whether it ends
            !(source instanceof Source<?, ?, ?> read && read.getBoundedness() == Boundedness.CONTINUOUS_UNBOUNDED));
        if (factoryName.equals("SourceOperatorFactory")) {
            kept(operator, "yes", "source", source);
        } else if (factoryName.equals("CommitterOperatorFactory")) {
            kept(operator, "yes", "committer", null);
        } else if (factoryName.contains("SinkWriterOperatorFactory")) {
            kept(operator, implementsAny(sink, "SupportsWriterState", "StatefulSink") ? "yes" : "no", "sink writer", sink);
        } else if (kind.matches(GENERATED) && !keyed) {
            kept(operator, "no", "generated", null);
        } else if (!kind.matches(FLINKS) || classes.contains("ython")) {
            kept(operator, "may", "class", function);
        } else if (classes.contains("ookup") && !waits) { // opening it connects
            kept(operator, keyed ? "may" : "no", "lookup", function);
        } else {
            boolean state = keyed || implementsAny(function, "CheckpointedFunction", "ListCheckpointed");
            kept(operator, state ? "may" : "no", "not opened", function);
            boolean edge = node.getInEdges().isEmpty() || node.getOutEdges().isEmpty();
            probe(operator, node, !waits && (!edge || keyed), id);
        }
        return operator;
    }

    /** Whether an operator keeps state, how that is known, and the class of its source, sink or function. */
    private static void kept(Map<String, Object> operator, String keeps, String basis, Object component) {
        operator.putAll(Map.of("keeps", keeps, "basis", basis, "component", ClassUtils.getName(component, "")));
    }

    private void probe(Map<String, Object> operator, StreamNode node, boolean opens, OperatorID id) {
        try (OperatorProbe probe = new OperatorProbe(node, graph.getExecutionConfig(), opens, null)) {
            OperatorState state = Reflected.made(OperatorState.class, id, 1, OperatorProbe.MAX_PARALLELISM);
            state.putState(0, probe.snapshot());
            List<Map<String, Object>> states = probe.registered.stream().map(each -> Map.<String, Object>of(
                "name", each.getName(), "kind", each.getBackendStateType().name(),
                "options", new TreeMap<>(each.getOptionsImmutable()))).toList();
            operator.putAll(Map.of("keeps", states.isEmpty() ? "no" : "yes", "basis", "opened", "states", states));
            if (states.isEmpty()) return;
            empty.add(state);
        } catch (Throwable e) {
            operator.put("failure", Main.chain(e));
            return;
        }
        if (!stored.containsKey(id)) return;
        try (OperatorProbe probe = new OperatorProbe(node, graph.getExecutionConfig(), opens, stored.get(id))) {
            restores.put(id.toHexString(), List.of());
        } catch (Throwable e) {
            restores.put(id.toHexString(), Main.chain(e));
        }
    }

    private static boolean implementsAny(Object of, String... names) {
        return of != null && ClassUtils.getAllInterfaces(of.getClass()).stream()
            .anyMatch(each -> List.of(names).contains(each.getSimpleName()));
    }
}
