package io.github.nccl4j.header;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Writes the files of {@link SymbolList} for the header of a library beside libnccl, which includes {@code nccl.h}. Their names
 * begin with the name of the header: {@code nccl_ep_functions.inc}.
 */
public final class ExtensionSymbols {
    private ExtensionSymbols() {}

    /**
     * Writes the files. Usage: {@code --header FILE --nccl FILE --output DIR}.
     *
     * @param args the command line
     * @throws IOException if a file can't be read or written
     * @throws IllegalStateException if a function has a type without a counterpart in Java
     */
    public static void main(String... args) throws IOException {
        Arguments arguments = new Arguments("ExtensionSymbols --header FILE --nccl FILE --output DIR", args);
        Path file = arguments.path("header");
        Header header = Header.parse(file);
        String name = file.getFileName().toString().replace(".h", "_");
        Path output = Files.createDirectories(arguments.path("output"));
        SymbolList list = SymbolList.ofExtension(header);
        JavaForms forms = new JavaForms(header, header.including(Header.parse(arguments.path("nccl"))));
        if (!forms.unbound().isEmpty()) {
            throw new IllegalStateException("not bound: " + forms.unbound().values());
        }
        GeneratedFile.write(output.resolve(name + "functions.inc"), list.functions());
        GeneratedFile.write(output.resolve(name + "structs.inc"), list.structs());
        GeneratedFile.write(output.resolve(name + "redirect.inc"), list.redirections());
        GeneratedFile.write(output.resolve(name + "rules.txt"), forms.rules());
    }
}
