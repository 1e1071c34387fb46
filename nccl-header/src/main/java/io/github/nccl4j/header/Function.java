package io.github.nccl4j.header;

import java.util.List;
import java.util.stream.Collectors;

/**
 * The prototype of a function. Immutable.
 *
 * @param returnType the type of the result, as in {@code ncclResult_t}
 * @param name the name
 * @param parameters the parameters; none for both {@code ()} and {@code (void)}
 * @param since the text after {@code @since} in the doc comment, or empty
 */
public record Function(String returnType, String name, List<Parameter> parameters, String since) {
    /**
     * Copies the list.
     *
     * @param returnType the type of the result, as in {@code ncclResult_t}
     * @param name the name
     * @param parameters the parameters; none for both {@code ()} and {@code (void)}
     * @param since the text after {@code @since} in the doc comment, or empty
     */
    public Function {
        parameters = List.copyOf(parameters);
    }

    /**
     * Returns the types of the result and the parameters, without names.
     *
     * @return the types, such as {@code ncclResult_t (int*)}
     */
    public String signature() {
        return parameters.stream().map(Parameter::type).collect(Collectors.joining(", ", returnType + " (", ")"));
    }

    @Override
    public String toString() {
        return parameters.stream()
                .map(Parameter::toString)
                .collect(Collectors.joining(", ", returnType + " " + name + "(", ")"));
    }
}
