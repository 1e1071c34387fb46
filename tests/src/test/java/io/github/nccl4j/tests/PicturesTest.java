package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.awt.geom.Rectangle2D;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/** The pictures of README and docs are legible on a telephone, which shows them 400 pixels wide. */
class PicturesTest {
    private static final Path HOME = Path.of("..").toAbsolutePath().normalize();
    private static final double SHOWN_WIDTH = 400;
    private static final double LEAST_HEIGHT = 9.9;
    /** The average character of a wide font, such as Verdana or DejaVu, in em. */
    private static final double WIDTH_OF_A_CHARACTER = 0.65;

    /** The pictures that a page shows. */
    static Set<Path> pictures() throws IOException {
        Set<Path> pictures = new TreeSet<>();
        try (Stream<Path> docs = Files.walk(HOME.resolve("docs"))) {
            for (Path page : Stream.concat(Stream.of(HOME.resolve("README.md")), docs)
                    .filter(file -> file.toString().endsWith(".md"))
                    .toList()) {
                Matcher image = Pattern.compile("!\\[[^]]*]\\(([^)]+)\\)").matcher(Files.readString(page));
                while (image.find()) {
                    pictures.add(page.resolveSibling(image.group(1)).normalize());
                }
            }
        }
        return pictures;
    }

    @Test
    void pagesShowEveryPicture() throws IOException {
        try (Stream<Path> docs = Files.walk(HOME.resolve("docs"))) {
            Set<Path> drawn = docs.filter(file -> file.toString().matches(".*\\.(svg|png)"))
                    .collect(TreeSet::new, Set::add, Set::addAll);
            assertEquals(drawn, pictures());
        }
    }

    @ParameterizedTest
    @MethodSource("pictures")
    void picturesAreLegibleAt400Pixels(Path picture) throws Exception {
        Element root = DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(picture.toFile())
                .getDocumentElement();
        String[] view = root.getAttribute("viewBox").split(" ");
        Rectangle2D page = new Rectangle2D.Double(0, 0, Double.parseDouble(view[2]), Double.parseDouble(view[3]));
        List<Rectangle2D> boxes = new ArrayList<>();
        NodeList texts = root.getElementsByTagName("text");
        assertTrue(texts.getLength() > 0, () -> picture + " has no text");
        for (int i = 0; i < texts.getLength(); i++) {
            Element text = (Element) texts.item(i);
            double size = fontSize(root, text);
            double height = size * SHOWN_WIDTH / page.getWidth();
            assertTrue(
                    height >= LEAST_HEIGHT,
                    () -> "'" + text.getTextContent() + "' must be " + LEAST_HEIGHT + " pixels high: " + height);
            Rectangle2D box = box(text, size);
            assertTrue(page.contains(box), () -> "'" + text.getTextContent() + "' leaves the picture: " + box);
            assertTrue(
                    boxes.stream().noneMatch(box::intersects),
                    () -> "'" + text.getTextContent() + "' touches another text: " + box);
            boxes.add(box);
        }
    }

    /** The size that a rule for the class of a text states, or that for all texts, or the attribute of the picture. */
    private static double fontSize(Element root, Element text) {
        String style = root.getElementsByTagName("style").item(0).getTextContent();
        List<String> selectors = new ArrayList<>();
        if (!text.getAttribute("class").isEmpty()) {
            selectors.add("\\." + Pattern.quote(text.getAttribute("class")));
        }
        selectors.add("(?<![.\\w])text");
        for (String selector : selectors) {
            Matcher rule = Pattern.compile(selector + " \\{[^}]*?font(?:-size)?: *([0-9.]+)px")
                    .matcher(style);
            if (rule.find()) {
                return Double.parseDouble(rule.group(1));
            }
        }
        return Double.parseDouble(root.getAttribute("font-size"));
    }

    private static Rectangle2D box(Element text, double size) {
        double width = text.hasAttribute("textLength")
                ? Double.parseDouble(text.getAttribute("textLength"))
                : text.getTextContent().length() * size * WIDTH_OF_A_CHARACTER;
        double x = Double.parseDouble(text.getAttribute("x"));
        String anchor = text.getAttribute("text-anchor");
        double left = anchor.equals("middle") ? x - width / 2 : anchor.equals("end") ? x - width : x;
        return new Rectangle2D.Double(left, Double.parseDouble(text.getAttribute("y")) - 0.8 * size, width, size);
    }
}
