package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The files for native-image, of small bindings. */
class NativeImageFilesTest {
    private static final Map<String, String> SOURCES = Map.of(
            "Pointer", "package org.bytedeco.javacpp; public class Pointer {}",
            "Stream", "package org.bytedeco.cuda; public class Stream extends org.bytedeco.javacpp.Pointer {}",
            "Parent", "package a; class Parent {}",
            "Calls", """
                    package a;
                    class Calls extends Parent {
                        static native int send(long stream) throws java.io.IOException;
                        static native org.bytedeco.cuda.Stream stream();
                    }
                    """,
            "Config", "package a; class Config extends org.bytedeco.javacpp.Pointer {}",
            "Listener", "package a; class Listener { static void call(int slot, String name) {} void other() {} }");

    @TempDir
    Path folder;

    private Path compile(Map<String, String> sources) throws IOException {
        Path classes = Files.createDirectories(folder.resolve("classes"));
        List<String> command = new ArrayList<>(List.of("-proc:none", "-d", classes.toString()));
        for (Map.Entry<String, String> source : sources.entrySet()) {
            Path file = folder.resolve(source.getKey() + ".java");
            command.add(Files.writeString(file, source.getValue()).toString());
        }
        assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, command.toArray(String[]::new)));
        return classes;
    }

    private void write(Path classes, String called) throws Exception {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        try (URLClassLoader loader =
                new URLClassLoader(new URL[] {classes.toUri().toURL()}, ClassLoader.getPlatformClassLoader())) {
            thread.setContextClassLoader(loader);
            NativeImageConfig.main(
                    "--classes",
                    classes.toString(),
                    "--package",
                    "a",
                    "--called",
                    called,
                    "--resources",
                    "a/.*\\.so,b",
                    "--output",
                    folder.resolve("out/native-image").toString());
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    @Test
    void whatNativeCodeLooksUpIsListed() throws Exception {
        write(compile(SOURCES), "a.Listener.call");
        String message = "\"methods\": [{\"name\": \"<init>\", \"parameterTypes\": [\"java.lang.String\"]}]";
        String list = """
                [
                  {"name": "a.Calls"},
                  {"name": "a.Config", "allDeclaredConstructors": true},
                  {"name": "a.Listener", "methods": [{"name": "call", "parameterTypes": ["int", "java.lang.String"]}]},
                  {"name": "a.Parent"},
                  {"name": "java.io.IOException", %1$s},
                  {"name": "java.lang.NullPointerException", %1$s},
                  {"name": "java.lang.OutOfMemoryError", %1$s},
                  {"name": "java.lang.RuntimeException", %1$s},
                  {"name": "java.lang.UnsatisfiedLinkError", %1$s},
                  {"name": "org.bytedeco.cuda.Stream", "allDeclaredConstructors": true}
                ]
                """.replace("%1$s", message);
        Path out = folder.resolve("out/native-image");
        assertEquals(list, Files.readString(out.resolve("jni-config.json")));
        assertEquals(list, Files.readString(out.resolve("reflect-config.json")));
        assertEquals("""
                {
                  "resources": {"includes": [
                    {"pattern": "a/.*\\\\.so"},
                    {"pattern": "b"}
                  ]}
                }
                """, Files.readString(out.resolve("resource-config.json")));
    }

    @Test
    void nativeCodeMayCallNoMethod() throws Exception {
        write(compile(SOURCES), "none");
        String list = Files.readString(folder.resolve("out/native-image/jni-config.json"));
        assertTrue(list.contains("\"a.Calls\"") && !list.contains("a.Listener"), list);
    }

    @Test
    void bindingsWithoutNativeMethodsOrWithTwoCalledOnesAreRefused() throws Exception {
        Path classes = compile(Map.of("Plain", "package a; class Plain { void one() {} void one(int more) {} }"));
        IllegalStateException none = assertThrows(IllegalStateException.class, () -> write(classes, "a.Plain.one"));
        assertEquals("no class with native methods in " + classes.resolve("a"), none.getMessage());
        compile(Map.of("Plain", "package a; class Plain { native void one(); void one(int more) {} }"));
        IllegalStateException two = assertThrows(IllegalStateException.class, () -> write(classes, "a.Plain.one"));
        assertEquals("there must be 1 method a.Plain.one: 2", two.getMessage());
    }
}
