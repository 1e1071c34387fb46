package io.github.nccl4j.tools.launch;

import java.util.ArrayList;
import java.util.List;
import java.util.Stack;
import picocli.CommandLine.IParameterConsumer;
import picocli.CommandLine.MissingParameterException;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;

/**
 * Takes the next argument as an option for a JVM, even if the command has an option of the same name, such as {@code -D}.
 *
 * <p>Stateless.
 */
public final class JvmOptionConsumer implements IParameterConsumer {
    /** For picocli. */
    public JvmOptionConsumer() {}

    @Override
    public void consumeParameters(Stack<String> arguments, ArgSpec option, CommandSpec command) {
        if (arguments.isEmpty()) {
            throw new MissingParameterException(
                    command.commandLine(),
                    option,
                    "Missing required parameter for option '" + option.paramLabel() + "'");
        }
        List<String> options = new ArrayList<>(option.<List<String>>getValue());
        options.add(arguments.pop());
        option.setValue(options);
    }
}
