package flinkcompat.planner;

import java.io.IOException;
import java.util.*;
import java.util.concurrent.RunnableFuture;
import org.apache.commons.lang3.ObjectUtils;
import org.apache.flink.api.common.*;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.memory.DataInputViewStreamWrapper;
import org.apache.flink.core.memory.ManagedMemoryUseCase;
import org.apache.flink.runtime.accumulators.AccumulatorRegistry;
import org.apache.flink.runtime.checkpoint.*;
import org.apache.flink.runtime.execution.Environment;
import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.memory.MemoryManager;
import org.apache.flink.runtime.metrics.groups.UnregisteredMetricGroups;
import org.apache.flink.runtime.operators.coordination.OperatorEventDispatcher;
import org.apache.flink.runtime.state.*;
import org.apache.flink.runtime.state.memory.MemCheckpointStreamFactory;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.apache.flink.runtime.taskmanager.TaskManagerRuntimeInfo;
import org.apache.flink.streaming.api.graph.*;
import org.apache.flink.streaming.api.operators.*;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.tasks.StreamTask;
import org.apache.flink.util.*;
import org.apache.flink.util.concurrent.FutureUtils;

/** One operator in a task of its own: it is initialised as a restore does, and no row is processed. */
final class OperatorProbe implements AutoCloseable {
    static final int MAX_PARALLELISM = 128;
    private static final int LARGEST_STATE = 1 << 26;
    private static final long MEMORY = 1 << 26;

    private final ClassLoader loader;
    private final PrioritizedOperatorSubtaskState restored;
    private final Configuration configuration = new Configuration();
    private final MemoryManager memory = MemoryManager.create(MEMORY, MemoryManager.DEFAULT_PAGE_SIZE);
    private final Task task;
    private final StreamOperator<Object> operator;

    /**
     * Starts an operator as a task would.
     *
     * @param opens whether the operator is opened too; sources, sinks and lookups may connect when they are
     * @param stored the state that it is restored from, null for none
     */
    @SuppressWarnings("unchecked")
    OperatorProbe(StreamNode node, ExecutionConfig execution, boolean opens, OperatorSubtaskState stored,
            ClassLoader loader) throws Exception {
        this.loader = loader;
        restored = stored == null ? PrioritizedOperatorSubtaskState.emptyNotRestored()
            : new PrioritizedOperatorSubtaskState.Builder(stored, List.of(), 1L).build();
        StreamConfig config = configured(node);
        task = new Task(environment(execution));
        StreamOperatorFactory<Object> factory =
            (StreamOperatorFactory<Object>) InstantiationUtil.clone(node.getOperatorFactory(), loader);
        Output<StreamRecord<Object>> output = Reflected.answering(Output.class, Map.of());
        OperatorEventDispatcher events = Reflected.answering(OperatorEventDispatcher.class, Map.of());
        operator = StreamOperatorFactoryUtil.<Object, StreamOperator<Object>>createOperator(
            factory, task, config, output, events).f0;
        operator.initializeState(task.createStreamTaskStateInitializer(new SubTaskInitializationMetricsBuilder(0)));
        if (opens) operator.open();
    }

    private StreamConfig configured(StreamNode node) {
        StreamConfig config = new StreamConfig(configuration);
        config.setOperatorID(new OperatorID());
        config.setOperatorName(node.getOperatorName());
        config.setManagedMemoryFractionOperatorOfUseCase(ManagedMemoryUseCase.OPERATOR, 1.0);
        config.setupNetworkInputs(node.getTypeSerializersIn());
        config.setTypeSerializerOut(node.getTypeSerializerOut());
        if (node.getStateKeySerializer() != null) {
            config.setStateKeySerializer(node.getStateKeySerializer());
            for (int i = 0; i < node.getStatePartitioners().length; i++) {
                config.setStatePartitioner(i, node.getStatePartitioners()[i]);
            }
        }
        config.serializeAllConfigs();
        return config;
    }

    private Environment environment(ExecutionConfig execution) throws ReflectiveOperationException {
        JobID job = new JobID();
        ExecutionAttemptID attempt = ExecutionAttemptID.randomId();
        Map<String, Object> answers = new HashMap<>();
        answers.put("getExecutionConfig", execution);
        answers.put("getJobID", job);
        answers.put("getJobInfo", new JobInfoImpl(job, "probe"));
        answers.put("getExecutionId", attempt);
        answers.put("getTaskInfo", new TaskInfoImpl("probe", MAX_PARALLELISM, 0, 1, 0));
        answers.put("getTaskConfiguration", configuration);
        answers.put("getJobConfiguration", new Configuration());
        answers.put("getTaskManagerInfo",
            Reflected.answering(TaskManagerRuntimeInfo.class, Map.of("getConfiguration", new Configuration())));
        answers.put("getMetricGroup", UnregisteredMetricGroups.createUnregisteredTaskMetricGroup());
        answers.put("getMemoryManager", memory);
        answers.put("getUserCodeClassLoader", SimpleUserCodeClassLoader.create(loader));
        answers.put("getAccumulatorRegistry", new AccumulatorRegistry(job, attempt));
        answers.put("getTaskStateManager", Reflected.answering(TaskStateManager.class, Map.of(
            "prioritizedOperatorState", restored,
            "createLocalRecoveryConfig", Reflected.made(LocalRecoveryConfig.class, (Object) null))));
        return Reflected.answering(Environment.class, answers);
    }

    /** The state of an operator that has seen no row, as its backends write it. */
    OperatorSubtaskState snapshot() throws Exception {
        Object handler = Reflected.field(operator, "stateHandler");
        return OperatorSubtaskState.builder()
            .setManagedKeyedState(OperatorProbe.<KeyedStateHandle>written(
                Reflected.field(handler, "keyedStateBackend"), Reflected.field(handler, "asyncKeyedStateBackend")))
            .setManagedOperatorState(OperatorProbe.<OperatorStateHandle>written(
                Reflected.field(handler, "operatorStateBackend")))
            .build();
    }

    @SuppressWarnings("unchecked")
    private static <S extends StateObject> StateObjectCollection<S> written(Object... backends) throws Exception {
        Snapshotable<SnapshotResult<S>> backend =
            (Snapshotable<SnapshotResult<S>>) ObjectUtils.firstNonNull(backends);
        if (backend == null) return StateObjectCollection.empty();
        RunnableFuture<SnapshotResult<S>> result = backend.snapshot(1L, 1L,
            new MemCheckpointStreamFactory(LARGEST_STATE), CheckpointOptions.forCheckpointWithDefaultLocation());
        return StateObjectCollection.singletonOrEmpty(FutureUtils.runIfNotDoneAndGet(result).getJobManagerOwnedSnapshot());
    }

    /** What a state was written by, in a fixed order. */
    static List<StateMetaInfoSnapshot> registered(OperatorSubtaskState state, ClassLoader loader) throws IOException {
        List<StateMetaInfoSnapshot> found = new ArrayList<>();
        for (KeyedStateHandle handle : state.getManagedKeyedState()) {
            KeyedBackendSerializationProxy<?> header = new KeyedBackendSerializationProxy<>(loader);
            try (var in = ((KeyGroupsStateHandle) handle).openInputStream()) {
                header.read(new DataInputViewStreamWrapper(in));
            }
            found.addAll(header.getStateMetaInfoSnapshots());
        }
        for (OperatorStateHandle handle : state.getManagedOperatorState()) {
            OperatorBackendSerializationProxy header = new OperatorBackendSerializationProxy(loader);
            try (var in = handle.openInputStream()) {
                header.read(new DataInputViewStreamWrapper(in));
            }
            found.addAll(header.getOperatorStateMetaInfoSnapshots());
            found.addAll(header.getBroadcastStateMetaInfoSnapshots());
        }
        found.sort(Comparator.comparing((StateMetaInfoSnapshot each) -> each.getBackendStateType().name())
            .thenComparing(StateMetaInfoSnapshot::getName));
        return found;
    }

    @Override public void close() throws Exception {
        try {
            operator.close();
        } finally {
            task.cleanUp(null);
            memory.shutdown();
        }
    }

    private static final class Task extends StreamTask<Object, StreamOperator<Object>> {
        Task(Environment environment) throws Exception { super(environment); }

        @Override protected void init() {}
    }
}
