package flinkcompat.planner;

import java.io.Serializable;
import java.lang.reflect.*;
import java.util.*;
import java.util.function.Function;
import org.apache.commons.lang3.function.Failable;
import org.apache.commons.lang3.reflect.FieldUtils;
import org.apache.flink.configuration.Configuration;

/** Objects of Flink whose constructors, fields or methods differ between lines. */
final class Reflected {
    /** An object with these answers by method, its types' own defaults, what was set, and nothing else. */
    @SuppressWarnings("unchecked")
    static <T> T answering(Map<String, ?> given, Class<?>... types) {
        HashMap<String, Object> answers = new HashMap<>(given);
        InvocationHandler handler = (InvocationHandler & Serializable) (proxy, method, arguments) -> {
            String name = method.getName();
            if (answers.get(name) instanceof Function<?, ?> function) {
                return ((Function<Object, Object>) function).apply(arguments[0]);
            }
            if (answers.containsKey(name)) return answers.get(name);
            if (name.equals("copy")) return proxy;
            if (name.startsWith("set")) return answers.put("get" + name.substring(3), arguments[0]);
            if (name.equals("hashCode")) return System.identityHashCode(proxy);
            if (name.equals("equals")) return proxy == arguments[0];
            if (method.isDefault()) return InvocationHandler.invokeDefault(proxy, method, arguments);
            return nothing(method.getReturnType());
        };
        return (T) Proxy.newProxyInstance(Reflected.class.getClassLoader(), types, handler);
    }

    private static Object nothing(Class<?> type) {
        if (type == Optional.class) return Optional.empty();
        if (type == Map.class) return Map.of();
        if (type == Configuration.class) return new Configuration();
        if (type.isArray()) return Array.newInstance(type.getComponentType(), 0);
        return type.isPrimitive() && type != void.class ? Array.get(Array.newInstance(type, 1), 0) : null;
    }

    /** A new object by the only public constructor with those last arguments; lines differ in the ones before. */
    static <T> T made(Class<T> type, Object... last) throws ReflectiveOperationException {
        Constructor<?> constructor = type.getConstructors()[0];
        Class<?>[] types = constructor.getParameterTypes();
        Object[] all = new Object[types.length];
        int first = types.length - last.length;
        Arrays.setAll(all, i -> i < first ? nothing(types[i]) : last[i - first]);
        return type.cast(constructor.newInstance(all));
    }

    /** A type that not every line has. */
    static Optional<Class<?>> type(String name) {
        try {
            return Optional.of(Class.forName(name));
        } catch (ClassNotFoundException e) {
            return Optional.empty();
        }
    }

    /** The value of a field of an object or of a class above its own; null where there is none. */
    static Object field(Object of, String name) {
        Field field = of == null ? null : FieldUtils.getField(of.getClass(), name, true);
        return field == null ? null : Failable.get(() -> field.get(of));
    }
}
