package io.github.nccl4j.tools.perf;

import java.awt.Color;
import java.awt.Graphics2D;
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

/** Draws results as PNG: bus bandwidth and time over size, a line per file. */
final class Plot {
    private static final int WIDTH = 760;
    private static final int HEIGHT = 520;
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
        XYChart bus = chart(title, "bus bandwidth (GB/s)", files, ResultFile::bus);
        XYChart time = chart(title, "time (us)", files, ResultFile::micros);
        time.getStyler().setYAxisLogarithmic(true);
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
        BufferedImage image = new BufferedImage(2 * WIDTH * PIXELS, HEIGHT * PIXELS, BufferedImage.TYPE_INT_RGB);
        Graphics2D graphics = image.createGraphics();
        graphics.scale(PIXELS, PIXELS);
        bus.paint(graphics, WIDTH, HEIGHT);
        graphics.translate(WIDTH, 0);
        time.paint(graphics, WIDTH, HEIGHT);
        graphics.dispose();
        try (OutputStream file = Files.newOutputStream(png)) {
            if (!ImageIO.write(image, "png", file)) {
                throw new IOException("this Java writes no PNG: " + png);
            }
        }
    }

    private static XYChart chart(
            String title, String y, List<ResultFile> files, Function<ResultFile, Map<Long, Double>> values) {
        XYChart chart = new XYChartBuilder()
                .width(WIDTH)
                .height(HEIGHT)
                .title(title)
                .xAxisTitle("size")
                .yAxisTitle(y)
                .build();
        chart.getStyler().setLegendPosition(Styler.LegendPosition.OutsideS);
        chart.getStyler().setChartBackgroundColor(Color.WHITE);
        chart.getStyler().setxAxisTickLabelsFormattingFunction(SvgPlot::size);
        for (ResultFile file : files) {
            Map<Long, Double> points = values.apply(file);
            double[] sizes = points.keySet().stream()
                    .mapToDouble(size -> Math.log(size) / Math.log(2))
                    .toArray();
            double[] numbers =
                    points.values().stream().mapToDouble(Double::doubleValue).toArray();
            chart.addSeries(file.name(), sizes, numbers).setMarker(SeriesMarkers.CIRCLE);
        }
        return chart;
    }
}
