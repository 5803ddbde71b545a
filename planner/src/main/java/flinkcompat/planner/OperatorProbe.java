package flinkcompat.planner;

import java.util.*;
import org.apache.flink.api.common.*;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.memory.*;
import org.apache.flink.runtime.accumulators.AccumulatorRegistry;
import org.apache.flink.runtime.checkpoint.*;
import org.apache.flink.runtime.execution.Environment;
import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.memory.MemoryManager;
import org.apache.flink.runtime.metrics.groups.UnregisteredMetricGroups;
import org.apache.flink.runtime.state.*;
import org.apache.flink.runtime.state.memory.MemCheckpointStreamFactory;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.apache.flink.runtime.taskmanager.TaskManagerRuntimeInfo;
import org.apache.flink.streaming.api.graph.*;
import org.apache.flink.streaming.api.operators.*;
import org.apache.flink.streaming.runtime.tasks.StreamTask;
import org.apache.flink.util.*;
import org.apache.flink.util.concurrent.FutureUtils;

/** One operator in a task of its own: it is initialised as a restore does, and no row is processed. */
final class OperatorProbe implements AutoCloseable {
    static final int MAX_PARALLELISM = 128;
    private static final int MEMORY = 1 << 26;

    /** The states that the snapshot holds, and how each was written. */
    final List<StateMetaInfoSnapshot> registered = new ArrayList<>();
    private final Configuration configuration = new Configuration();
    private final MemoryManager memory = MemoryManager.create(MEMORY, MemoryManager.DEFAULT_PAGE_SIZE);
    private final StreamTask<Object, StreamOperator<Object>> task;
    private final StreamOperator<Object> operator;

    /** Starts an operator as a task would, from a state or null; sources, sinks and lookups may connect when opened. */
    @SuppressWarnings("unchecked")
    OperatorProbe(StreamNode node, ExecutionConfig execution, boolean opens, OperatorSubtaskState stored)
            throws Exception {
        StreamConfig config = new StreamConfig(configuration);
        config.setOperatorID(new OperatorID());
        config.setManagedMemoryFractionOperatorOfUseCase(ManagedMemoryUseCase.OPERATOR, 1.0);
        config.setupNetworkInputs(node.getTypeSerializersIn());
        config.setTypeSerializerOut(node.getTypeSerializerOut());
        if (node.getStateKeySerializer() != null) config.setStateKeySerializer(node.getStateKeySerializer());
        config.serializeAllConfigs();
        task = new StreamTask<>(environment(execution, stored)) {
            @Override protected void init() {}
        };
        StreamOperatorFactory<Object> factory =
            (StreamOperatorFactory<Object>) InstantiationUtil.clone(node.getOperatorFactory(), Main.loader());
        operator = StreamOperatorFactoryUtil.<Object, StreamOperator<Object>>createOperator(
            factory, task, config, Reflected.answering(Map.of(), Output.class), null).f0;
        operator.initializeState(task.createStreamTaskStateInitializer(new SubTaskInitializationMetricsBuilder(0)));
        if (opens) operator.open();
    }

    private Environment environment(ExecutionConfig execution, OperatorSubtaskState stored)
            throws ReflectiveOperationException {
        PrioritizedOperatorSubtaskState restored = stored == null ? PrioritizedOperatorSubtaskState.emptyNotRestored()
            : new PrioritizedOperatorSubtaskState.Builder(stored, List.of(), 1L).build();
        JobID job = new JobID();
        Map<String, Object> answers = new HashMap<>(Map.of(
            "getExecutionConfig", execution, "getTaskConfiguration", configuration, "getMemoryManager", memory,
            "getJobID", job, "getJobInfo", new JobInfoImpl(job, "probe"),
            "getTaskInfo", new TaskInfoImpl("probe", MAX_PARALLELISM, 0, 1, 0),
            "getTaskManagerInfo", Reflected.answering(Map.of(), TaskManagerRuntimeInfo.class),
            "getMetricGroup", UnregisteredMetricGroups.createUnregisteredTaskMetricGroup(),
            "getUserCodeClassLoader", SimpleUserCodeClassLoader.create(Main.loader())));
        answers.put("getAccumulatorRegistry", new AccumulatorRegistry(job, ExecutionAttemptID.randomId()));
        LocalRecoveryConfig local = Reflected.made(LocalRecoveryConfig.class, (Object) null);
        answers.put("getTaskStateManager", Reflected.answering(
            Map.of("prioritizedOperatorState", restored, "createLocalRecoveryConfig", local), TaskStateManager.class));
        return Reflected.answering(answers, Environment.class);
    }

    /** The state of an operator that has seen no row, as its backends write it. */
    OperatorSubtaskState snapshot() throws Exception {
        OperatorSubtaskState.Builder state = OperatorSubtaskState.builder();
        Object handler = Reflected.field(operator, "stateHandler");
        for (String backend : List.of("keyedStateBackend", "asyncKeyedStateBackend", "operatorStateBackend")) {
            if (!(Reflected.field(handler, backend) instanceof Snapshotable<?> kept)) continue;
            SnapshotResult<?> result = (SnapshotResult<?>) FutureUtils.runIfNotDoneAndGet(kept.snapshot(1L, 1L,
                new MemCheckpointStreamFactory(MEMORY), CheckpointOptions.forCheckpointWithDefaultLocation()));
            StateObject written = result.getJobManagerOwnedSnapshot();
            if (written instanceof KeyGroupsStateHandle keyed) {
                state.setManagedKeyedState(keyed);
                KeyedBackendSerializationProxy<?> header = new KeyedBackendSerializationProxy<>(Main.loader());
                header.read(new DataInputViewStreamWrapper(keyed.openInputStream()));
                registered.addAll(header.getStateMetaInfoSnapshots());
            } else if (written instanceof OperatorStateHandle lists) {
                state.setManagedOperatorState(lists);
                OperatorBackendSerializationProxy header = new OperatorBackendSerializationProxy(Main.loader());
                header.read(new DataInputViewStreamWrapper(lists.openInputStream()));
                registered.addAll(header.getOperatorStateMetaInfoSnapshots());
                registered.addAll(header.getBroadcastStateMetaInfoSnapshots());
            }
        }
        return state.build();
    }

    @Override public void close() throws Exception {
        IOUtils.closeAll(operator::close, () -> task.cleanUp(null), memory::shutdown);
    }
}
