package flinkcompat.planner;

import java.io.Serializable;
import java.lang.reflect.*;
import java.util.*;
import org.apache.commons.lang3.ArrayUtils;
import org.apache.commons.lang3.ClassUtils;
import org.apache.commons.lang3.reflect.FieldUtils;

/** Objects of Flink whose constructors, fields or methods differ between lines. */
final class Reflected {
    private Reflected() {}

    /** An interface that has these answers, its own defaults, what was set, and nothing else. */
    @SuppressWarnings("unchecked")
    static <T> T answering(Class<? super T> type, Map<String, ?> given) {
        HashMap<String, Object> answers = new HashMap<>(given);
        InvocationHandler handler = (InvocationHandler & Serializable) (proxy, method, arguments) -> {
            String name = method.getName();
            if (answers.containsKey(name)) return answers.get(name);
            if (name.startsWith("set")) return answers.put("get" + name.substring(3), arguments[0]);
            if (name.equals("hashCode")) return System.identityHashCode(proxy);
            if (name.equals("equals")) return proxy == arguments[0];
            if (method.isDefault()) return InvocationHandler.invokeDefault(proxy, method, arguments);
            return nothing(method.getReturnType());
        };
        return (T) Proxy.newProxyInstance(Reflected.class.getClassLoader(), new Class<?>[] {type}, handler);
    }

    private static Object nothing(Class<?> type) {
        if (type == Optional.class) return Optional.empty();
        if (type == Map.class) return Map.of();
        if (type.isArray()) return Array.newInstance(type.getComponentType(), 0);
        return type.isPrimitive() && type != void.class ? Array.get(Array.newInstance(type, 1), 0) : null;
    }

    /** A new object by a public constructor with those last arguments; lines differ in what they take before. */
    static <T> T made(Class<T> type, Object... last) throws ReflectiveOperationException {
        for (Constructor<?> each : type.getConstructors()) {
            Class<?>[] types = each.getParameterTypes();
            int first = types.length - last.length;
            Class<?>[] others = ArrayUtils.subarray(types, first, types.length);
            if (first < 0 || !ClassUtils.isAssignable(ClassUtils.toClass(last), others, true)) continue;
            Object[] all = new Object[types.length];
            Arrays.setAll(all, i -> i < first ? nothing(types[i]) : last[i - first]);
            return type.cast(each.newInstance(all));
        }
        throw new NoSuchMethodException(type + " has no constructor that is known");
    }

    /** The value of a field of an object or of a class above its own; null where there is none. */
    static Object field(Object of, String name) {
        Field field = of == null ? null : FieldUtils.getField(of.getClass(), name, true);
        try {
            return field == null ? null : field.get(of);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }
}
