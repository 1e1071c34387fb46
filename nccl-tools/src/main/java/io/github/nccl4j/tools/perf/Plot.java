package io.github.nccl4j.tools.perf;

import java.awt.Color;
import java.awt.Font;
import java.awt.Graphics2D;
import java.awt.RenderingHints;
import java.awt.image.BufferedImage;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.LongStream;
import javax.imageio.ImageIO;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.Styler;
import org.knowm.xchart.style.markers.SeriesMarkers;

/** Draws results as PNG: bus bandwidth above time, over size, a line per file. The texts are as large as those of {@link SvgPlot}. */
final class Plot {
    private static final int WIDTH = SvgPlot.WIDTH;
    private static final int HEIGHT = 320;
    private static final int LINE = 26;
    /** Characters of a line. The average character of Java's font is narrower than 0.6 em. */
    private static final int TITLE_CHARACTERS = (int) ((WIDTH - 20) / (0.6 * SvgPlot.TITLE));

    private static final int LEGEND_CHARACTERS = (int) ((WIDTH - 120) / (0.6 * SvgPlot.TEXT));
    /** Pixels per unit, for high-resolution screens and print. */
    private static final int PIXELS = 2;

    /** The prefix of the message if this Java finds no fonts, for example a headless one. */
    static final String NO_FONTS = "a PNG needs fonts: install Debian's packages fontconfig and libharfbuzz0b";

    private Plot() {}

    /** Draws the files and writes the PNG. */
    static void write(String title, List<ResultFile> files, Path png) throws IOException {
        System.setProperty("java.awt.headless", "true");
        try {
            draw(title, files, png);
        } catch (LinkageError | InternalError noFonts) {
            // FreeType or HarfBuzz is not installed, or fontconfig finds no font.
            throw new IOException(NO_FONTS + ", or write an SVG instead of " + png + ": " + noFonts, noFonts);
        }
    }

    private static void draw(String title, List<ResultFile> files, Path png) throws IOException {
        List<String> titleLines = SvgPlot.lines(title, TITLE_CHARACTERS);
        int titleHeight = 10 + LINE * titleLines.size();
        int legendHeight =
                20 + LINE * files.stream().mapToInt(file -> legend(file).size()).sum();
        XYChart bus = chart("bus bandwidth (GB/s)", files, ResultFile::bus);
        XYChart time = chart("time (us)", files, ResultFile::micros);
        bus.getStyler().setLegendVisible(false);
        time.getStyler().setYAxisLogarithmic(true);
        time.getStyler().setYAxisDecimalPattern("0.######");
        // Whole powers of 10 at both ends: otherwise, values within one power leave the axis a single label.
        LongSummaryStatistics powers = files.stream()
                .flatMap(file -> file.micros().values().stream())
                .filter(value -> Double.isFinite(value) && value > 0)
                .flatMapToLong(value ->
                        LongStream.of((long) Math.floor(Math.log10(value)), (long) Math.ceil(Math.log10(value))))
                .summaryStatistics();
        if (powers.getCount() > 0) {
            time.getStyler().setYAxisMin(Math.pow(10, powers.getMin()));
            time.getStyler().setYAxisMax(Math.pow(10, Math.max(powers.getMax(), powers.getMin() + 1)));
        }
        int height = titleHeight + 2 * HEIGHT + legendHeight;
        BufferedImage image = new BufferedImage(WIDTH * PIXELS, height * PIXELS, BufferedImage.TYPE_INT_RGB);
        Graphics2D graphics = image.createGraphics();
        graphics.scale(PIXELS, PIXELS);
        graphics.setColor(Color.WHITE);
        graphics.fillRect(0, 0, WIDTH, height);
        graphics.setColor(Color.BLACK);
        graphics.setRenderingHint(RenderingHints.KEY_TEXT_ANTIALIASING, RenderingHints.VALUE_TEXT_ANTIALIAS_ON);
        graphics.setFont(new Font(Font.SANS_SERIF, Font.PLAIN, SvgPlot.TITLE));
        for (int i = 0; i < titleLines.size(); i++) {
            String line = titleLines.get(i);
            graphics.drawString(line, (WIDTH - graphics.getFontMetrics().stringWidth(line)) / 2, LINE * (i + 1));
        }
        graphics.translate(0, titleHeight);
        bus.paint(graphics, WIDTH, HEIGHT);
        graphics.translate(0, HEIGHT);
        time.paint(graphics, WIDTH, HEIGHT + legendHeight);
        graphics.dispose();
        try (OutputStream file = Files.newOutputStream(png)) {
            if (!ImageIO.write(image, "png", file)) {
                throw new IOException("this Java writes no PNG: " + png);
            }
        }
    }

    private static List<String> legend(ResultFile file) {
        return SvgPlot.lines(file.name(), LEGEND_CHARACTERS);
    }

    static XYChart chart(String y, List<ResultFile> files, Function<ResultFile, Map<Long, Double>> values) {
        XYChart chart = new XYChartBuilder()
                .width(WIDTH)
                .height(HEIGHT)
                .xAxisTitle("size")
                .yAxisTitle(y)
                .build();
        Font font = new Font(Font.SANS_SERIF, Font.PLAIN, SvgPlot.TEXT);
        chart.getStyler().setAxisTitleFont(font);
        chart.getStyler().setAxisTickLabelsFont(font);
        chart.getStyler().setLegendFont(font);
        chart.getStyler().setLegendPosition(Styler.LegendPosition.OutsideS);
        chart.getStyler().setLegendLayout(Styler.LegendLayout.Vertical);
        chart.getStyler().setLegendBorderColor(Color.WHITE);
        chart.getStyler().setXAxisTickMarkSpacingHint(90);
        chart.getStyler().setChartBackgroundColor(Color.WHITE);
        chart.getStyler().setxAxisTickLabelsFormattingFunction(SvgPlot::size);
        for (ResultFile file : files) {
            Map<Long, Double> points = values.apply(file);
            double[] sizes = points.keySet().stream()
                    .mapToDouble(size -> Math.log(size) / Math.log(2))
                    .toArray();
            double[] numbers =
                    points.values().stream().mapToDouble(Double::doubleValue).toArray();
            if (points.isEmpty()) {
                // A series without points is refused, and to leave it out would change the colors of the others.
                sizes = new double[] {
                    Math.log(files.get(0).micros().keySet().iterator().next()) / Math.log(2)
                };
                numbers = new double[] {Double.NaN};
            }
            chart.addSeries(String.join("\n", legend(file)), sizes, numbers).setMarker(SeriesMarkers.CIRCLE);
        }
        return chart;
    }
}
