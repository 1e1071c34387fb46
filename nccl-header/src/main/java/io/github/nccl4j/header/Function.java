package io.github.nccl4j.header;

import java.util.List;
import java.util.stream.Collectors;

/**
 * A prototype.
 *
 * @param returnType the type of the result, as in {@code ncclResult_t}
 * @param name the name
 * @param parameters the parameters; none for both {@code ()} and {@code (void)}
 * @param since what the doc comment says after {@code @since}; empty if it says nothing
 */
public record Function(String returnType, String name, List<Parameter> parameters, String since) {
    /**
     * Copies the list.
     *
     * @param returnType the type of the result, as in {@code ncclResult_t}
     * @param name the name
     * @param parameters the parameters; none for both {@code ()} and {@code (void)}
     * @param since what the doc comment says after {@code @since}; empty if it says nothing
     */
    public Function {
        parameters = List.copyOf(parameters);
    }

    /**
     * The types, without the names of function and parameters.
     *
     * @return for example {@code ncclResult_t (int*)}
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
