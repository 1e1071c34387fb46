package io.github.nccl4j.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.collection.immutable.Nil$;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.internal.util.BatchSourceFile;
import scala.reflect.internal.util.SourceFile;
import scala.tools.nsc.Global;
import scala.tools.nsc.Settings;
import scala.tools.nsc.reporters.StoreReporter;

/** The program of docs/spark.md in Scala compiles. */
class ScalaProgramTest {
    private static final Path PAGE = Path.of("../../docs/spark.md");

    @TempDir
    Path folder;

    @Test
    void theProgramCompiles() throws IOException {
        Matcher block = Pattern.compile("```scala\\R(.*?)```", Pattern.DOTALL).matcher(Files.readString(PAGE));
        assertTrue(block.find());
        Settings settings = new Settings();
        settings.processArguments(
                CollectionConverters.asScala(java.util.List.of(
                                "-d",
                                folder.toString(),
                                "-classpath",
                                System.getProperty("java.class.path"),
                                "-Werror"))
                        .toList(),
                true);
        StoreReporter messages = new StoreReporter(settings);
        Global compiler = new Global(settings, messages);
        SourceFile source = new BatchSourceFile(
                "Program.scala", scala.Predef.wrapString(block.group(1)).toSeq());
        compiler.new Run().compileSources(Nil$.MODULE$.$colon$colon(source));
        assertEquals("", messages.infos().mkString("\n"));
        assertTrue(Files.exists(folder.resolve("SumOfRows.class")));
    }
}
