package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/** The layers in the picture and in the table of docs/architecture.md are those of {@link LayersTest}. */
class ArchitecturePictureTest {
    private static final Path DOCS = Path.of("../docs");

    /** The widest average of common fonts, in em: that of Verdana and DejaVu, with a reserve. */
    private static final double WIDTH_OF_A_CHARACTER = 0.65;

    private static Document picture;
    private static Set<String> packages;
    private static Set<String> exported;

    @BeforeAll
    static void read() throws Exception {
        LayersTest.readTheJar();
        packages = LayersTest.packages();
        exported = LayersTest.exportedPackages();
        picture = parse("architecture.svg");
    }

    private static Document parse(String name) throws Exception {
        return DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(DOCS.resolve(name).toFile());
    }

    /** The layers from the bottom up, without the single classes that lower layers share. */
    private static List<Set<String>> layers() {
        List<Set<String>> layers = new ArrayList<>();
        for (Set<String> layer : LayersTest.LAYERS) {
            Set<String> only = new TreeSet<>(layer);
            only.retainAll(packages);
            if (!only.isEmpty()) {
                layers.add(only);
            }
        }
        return layers;
    }

    private static List<Element> elements(Element in, String tag, Predicate<Element> test) {
        List<Element> found = new ArrayList<>();
        NodeList all = in.getElementsByTagName(tag);
        for (int i = 0; i < all.getLength(); i++) {
            if (all.item(i) instanceof Element element && test.test(element)) {
                found.add(element);
            }
        }
        return found;
    }

    private static List<Element> ofClass(Element in, String tag, String type) {
        return elements(in, tag, element -> element.getAttribute("class").equals(type));
    }

    private static Set<String> names(Element in) {
        Set<String> names = new TreeSet<>();
        ofClass(in, "text", "name").forEach(text -> names.add(text.getTextContent()));
        return names;
    }

    @Test
    void everyPackageHasALayer() {
        Set<String> layered = new TreeSet<>();
        layers().forEach(layered::addAll);
        assertEquals(packages, layered);
    }

    @Test
    void pictureShowsTheLayersFromTheTopDown() {
        List<Set<String>> shown = new ArrayList<>();
        for (Element layer : ofClass(picture.getDocumentElement(), "g", "layer")) {
            shown.add(names(layer));
        }
        Collections.reverse(shown);
        assertEquals(layers(), shown);
    }

    @Test
    void pictureMarksTheExportedPackages() {
        Set<String> marked = new TreeSet<>();
        ofClass(picture.getDocumentElement(), "g", "exported").forEach(box -> marked.addAll(names(box)));
        assertEquals(exported, marked);
    }

    @Test
    void layersAreAboveEachOther() {
        double last = 0;
        for (Element layer : ofClass(picture.getDocumentElement(), "g", "layer")) {
            for (Element box : elements(layer, "rect", any -> true)) {
                assertTrue(
                        number(box, "y") >= last,
                        () -> "a box must be below the layer above it: y " + number(box, "y"));
            }
            Element first = elements(layer, "rect", any -> true).get(0);
            last = number(first, "y") + number(first, "height");
        }
    }

    /** Fonts differ in width. A text must fit in its box with a wide one, and must not touch the text beside it. */
    @ParameterizedTest
    @ValueSource(strings = {"architecture.svg", "ranks.svg"})
    void textsFitInTheirBoxes(String name) throws Exception {
        Element root = parse(name).getDocumentElement();
        List<Element> boxes = elements(root, "rect", any -> true);
        List<Element> texts = elements(root, "text", any -> true);
        assertTrue(texts.size() > 10, () -> texts.size() + " texts");
        for (Element text : texts) {
            Element box = boxes.stream()
                    .filter(one -> !one.getAttribute("class").equals("page") && contains(one, text))
                    .findFirst()
                    .orElseThrow(() -> new AssertionError("no box around: " + text.getTextContent()));
            double begin = number(box, "x");
            double end = begin + number(box, "width");
            assertTrue(
                    left(text) >= begin && right(text) <= end,
                    () -> "'" + text.getTextContent() + "' must fit in its box: " + left(text) + " to " + right(text)
                            + ", the box is " + begin + " to " + end);
            for (Element other : texts) {
                boolean isBeside = other != text && other.getAttribute("y").equals(text.getAttribute("y"));
                assertTrue(
                        !isBeside || right(other) < left(text) || right(text) < left(other),
                        () -> "'" + text.getTextContent() + "' must not touch '" + other.getTextContent() + "'");
            }
        }
    }

    private static boolean contains(Element box, Element text) {
        double x = number(text, "x") - number(box, "x");
        double y = number(text, "y") - number(box, "y");
        return x >= 0 && x <= number(box, "width") && y >= 0 && y <= number(box, "height");
    }

    private static double width(Element text) {
        return text.getTextContent().length()
                * number(text.getOwnerDocument().getDocumentElement(), "font-size")
                * WIDTH_OF_A_CHARACTER;
    }

    private static double left(Element text) {
        boolean isCentered = text.getAttribute("text-anchor").equals("middle");
        return number(text, "x") - (isCentered ? width(text) / 2 : 0);
    }

    private static double right(Element text) {
        return left(text) + width(text);
    }

    private static double number(Element element, String attribute) {
        return Double.parseDouble(element.getAttribute(attribute));
    }

    @Test
    void tableNamesTheLayersFromTheBottomUp() throws IOException {
        String page = Files.readString(DOCS.resolve("architecture.md"));
        String table = page.substring(page.indexOf("| layer | content |"));
        List<Set<String>> named = new ArrayList<>();
        Matcher row = Pattern.compile("(?m)^\\| (`[^|]+) \\|").matcher(table.substring(0, table.indexOf("\n\n")));
        while (row.find()) {
            Set<String> names = new TreeSet<>();
            Stream.of(row.group(1).split(", ")).forEach(name -> names.add(name.replace("`", "")));
            named.add(names);
        }
        assertEquals(layers(), named);
    }
}
