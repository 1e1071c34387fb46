package io.github.nccl4j.tools.perf;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.DoubleFunction;

/**
 * Draws results over size as SVG, which needs neither fonts nor {@code java.desktop}. The texts are legible in a picture that is
 * shown 400 pixels wide.
 */
final class SvgPlot {
    static final int WIDTH = 640;
    /** The sizes of the texts: at 400 pixels, at least 10 pixels. */
    static final int TEXT = 17;

    static final int TITLE = 20;

    /** The left and right margins have room for the labels of the axes, in wide fonts too. */
    private static final int LEFT = 80;

    private static final int RIGHT = 40;
    private static final int PLOT_HEIGHT = 220;
    /** The name of a panel is above its frame; the labels and the name of its axis of sizes are below. */
    private static final int ABOVE = 36;

    private static final int BELOW = 60;
    private static final int PANEL_HEIGHT = ABOVE + PLOT_HEIGHT + BELOW;
    private static final int TITLE_LINE = 26;
    private static final int LEGEND_LINE = 26;
    private static final int MOST_SIZES = 6;
    private static final int MOST_VALUES = 8;

    /** Characters of a line, in wide fonts. */
    private static final int TITLE_CHARACTERS = (int) ((WIDTH - 20) / (0.65 * TITLE));

    private static final int LEGEND_CHARACTERS = (int) ((WIDTH - LEFT - 50) / (0.65 * TEXT));
    private static final List<String> UNITS = List.of("B", "KiB", "MiB", "GiB", "TiB");

    /** Colors that are distinguishable with any color vision, on white and on black. */
    private static final List<String> COLORS =
            List.of("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999");

    private static final String STYLE = """
            <style>
            text { font: %dpx sans-serif; fill: #222 }
            .title { font-size: %dpx }
            .paper { fill: #fff }
            .grid { stroke: #ccc }
            .frame { stroke: #222; fill: none }
            @media (prefers-color-scheme: dark) {
            text { fill: #ddd } .paper { fill: #0d1117 } .grid { stroke: #444 } .frame { stroke: #ddd } }
            </style>
            """;

    private final StringBuilder svg = new StringBuilder();

    /**
     * Values over size.
     *
     * @param name the name of the values
     * @param lines the values by size, for each line
     * @param base the base of a logarithmic axis, or 0
     * @param origin a value that a linear axis includes
     */
    private record Panel(String name, List<Map<Long, Double>> lines, double base, double origin) {
        boolean shows(double value) {
            return Double.isFinite(value) && (base == 0 || value > 0);
        }
    }

    private SvgPlot() {}

    /** The text of an SVG file with bus bandwidth above time. */
    static String of(String title, List<ResultFile> files) {
        Panel bus = new Panel(
                "bus bandwidth (GB/s)", files.stream().map(ResultFile::bus).toList(), 0, 0);
        Panel time =
                new Panel("time (us)", files.stream().map(ResultFile::micros).toList(), 10, 0);
        return new SvgPlot().draw(title, files.stream().map(ResultFile::name).toList(), List.of(bus, time));
    }

    /** The text of an SVG file with the ratios of times to those of nccl-tests, by the name of the line and the size. */
    static String ofRatios(String title, Map<String, Map<Long, Double>> ratios) {
        Panel panel = new Panel("time / time of nccl-tests", List.copyOf(ratios.values()), 0, 1);
        return new SvgPlot().draw(title, List.copyOf(ratios.keySet()), List.of(panel));
    }

    private String draw(String title, List<String> lineNames, List<Panel> panels) {
        List<String> titleLines = lines(title, TITLE_CHARACTERS);
        List<List<String>> names =
                lineNames.stream().map(name -> lines(name, LEGEND_CHARACTERS)).toList();
        int top = 16 + TITLE_LINE * titleLines.size();
        int legend = top + panels.size() * PANEL_HEIGHT;
        int height =
                legend + 10 + LEGEND_LINE * names.stream().mapToInt(List::size).sum();
        add(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">%n",
                WIDTH, height, WIDTH, height);
        add(STYLE, TEXT, TITLE);
        svg.append("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
        for (int i = 0; i < titleLines.size(); i++) {
            text(WIDTH / 2.0, 30 + TITLE_LINE * i, "middle", "title", titleLines.get(i));
        }
        for (int i = 0; i < panels.size(); i++) {
            panel(top + i * PANEL_HEIGHT + ABOVE, panels.get(i));
        }
        double y = legend + 20;
        for (int i = 0; i < names.size(); i++) {
            add(
                    "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"4\"/>%n",
                    LEFT, y - 6, LEFT + 30, y - 6, color(i));
            for (String line : names.get(i)) {
                text(LEFT + 40, y, "start", "", line);
                y += LEGEND_LINE;
            }
        }
        return svg.append("</svg>\n").toString();
    }

    /** The lines of a text: broken at spaces, or in a longer word. */
    static List<String> lines(String text, int most) {
        List<String> lines = new ArrayList<>();
        String rest = text;
        while (rest.length() > most) {
            int space = rest.lastIndexOf(' ', most);
            int end = space > 0 ? space : most;
            lines.add(rest.substring(0, end));
            rest = rest.substring(end).strip();
        }
        lines.add(rest);
        return lines;
    }

    /** Draws a panel whose frame begins at {@code top}. */
    private void panel(int top, Panel panel) {
        int bottom = top + PLOT_HEIGHT;
        int right = WIDTH - RIGHT;
        Axis across = new Axis(
                panel.lines().stream()
                        .flatMapToDouble(line -> line.keySet().stream().mapToDouble(Long::doubleValue))
                        .toArray(),
                2,
                0,
                LEFT,
                right,
                MOST_SIZES);
        Axis up = new Axis(
                panel.lines().stream()
                        .flatMapToDouble(line -> line.values().stream().mapToDouble(Double::doubleValue))
                        .filter(panel::shows)
                        .toArray(),
                panel.base(),
                panel.origin(),
                bottom,
                top,
                MOST_VALUES);
        across.ticks(size -> size(Math.log(size) / Math.log(2))).forEach((at, label) -> {
            add("<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>%n", at, top, at, bottom);
            text(at, bottom + 24, "middle", "", label);
        });
        up.ticks(SvgPlot::number).forEach((at, label) -> {
            add("<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>%n", LEFT, at, right, at);
            text(LEFT - 8, at + 6, "end", "", label);
        });
        add(
                "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>%n",
                LEFT, top, right - LEFT, PLOT_HEIGHT);
        text((LEFT + right) / 2.0, bottom + 46, "middle", "", "size");
        text(LEFT, top - 12, "start", "", panel.name());
        for (int i = 0; i < panel.lines().size(); i++) {
            line(panel, panel.lines().get(i), across, up, color(i));
        }
    }

    private void line(Panel panel, Map<Long, Double> points, Axis across, Axis up, String color) {
        StringBuilder corners = new StringBuilder();
        StringBuilder circles = new StringBuilder();
        points.forEach((size, value) -> {
            if (panel.shows(value)) {
                double x = across.at(size);
                double y = up.at(value);
                corners.append(String.format(Locale.ROOT, "%.1f,%.1f ", x, y));
                circles.append(String.format(
                        Locale.ROOT, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>%n", x, y, color));
            }
        });
        add(
                "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"3\"/>%n",
                corners.toString().strip(), color);
        svg.append(circles);
    }

    /** Maps values to coordinates. */
    private static final class Axis {
        private final double base;
        private final double low;
        private final double high;
        private final double from;
        private final double to;
        private final double step;

        /**
         * If {@code base} is not 0, the axis is logarithmic and its ends are powers of the base; otherwise it includes the origin.
         */
        Axis(double[] values, double base, double origin, double from, double to, int mostTicks) {
            this.base = base;
            this.from = from;
            this.to = to;
            double least = Double.MAX_VALUE;
            double most = -Double.MAX_VALUE;
            for (double value : values) {
                least = Math.min(least, scaled(value));
                most = Math.max(most, scaled(value));
            }
            if (values.length == 0) {
                least = 0;
                most = 1;
            }
            double first = base > 0 ? Math.floor(least) : Math.min(origin, least);
            double last = base > 0 ? Math.ceil(most) : Math.max(origin, most);
            last = last > first ? last : first + 1;
            step = step((last - first) / mostTicks);
            low = base > 0 ? first : Math.floor(first / step) * step;
            high = base > 0 ? last : Math.ceil(last / step) * step;
        }

        private double scaled(double value) {
            return base > 0 ? Math.log(value) / Math.log(base) : value;
        }

        /** The next round number: 1, 2 or 5 times a power of 10; on a logarithmic axis, a whole number of powers. */
        private double step(double least) {
            double power = Math.pow(10, Math.floor(Math.log10(least)));
            double digit = least / power;
            double round = power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
            return base > 0 ? Math.max(1, Math.ceil(round)) : round;
        }

        double at(double value) {
            return from + (to - from) * (scaled(value) - low) / (high - low);
        }

        /** The labels of round values, by coordinate. */
        Map<Double, String> ticks(DoubleFunction<String> label) {
            Map<Double, String> ticks = new LinkedHashMap<>();
            for (double tick = low; tick < high + step / 1000; tick += step) {
                double value = base > 0 ? Math.pow(base, Math.round(tick)) : tick;
                ticks.put(at(value), label.apply(value));
            }
            return ticks;
        }
    }

    /** At most 6 characters for a round number: 0.25, 100000, 1e6. */
    static String number(double value) {
        BigDecimal number = BigDecimal.valueOf(value).round(new MathContext(6)).stripTrailingZeros();
        String plain = number.toPlainString();
        int power = number.precision() - number.scale() - 1;
        return plain.length() <= 6
                ? plain
                : number.scaleByPowerOfTen(-power).stripTrailingZeros().toPlainString() + "e" + power;
    }

    private static String color(int index) {
        return COLORS.get(index % COLORS.size());
    }

    private void text(double x, double y, String anchor, String kind, String text) {
        add(
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>%n",
                x, y, anchor, kind, escaped(text));
    }

    private static String escaped(String text) {
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
    }

    private void add(String format, Object... arguments) {
        svg.append(String.format(Locale.ROOT, format, arguments));
    }

    /** The label of a size that is given as an exponent of 2: 20 is 1 MiB. */
    static String size(double exponent) {
        int power = (int) Math.round(exponent);
        if (Math.abs(exponent - power) > 0.01 || power < 0 || power >= 10 * UNITS.size()) {
            return "";
        }
        return (1 << power % 10) + " " + UNITS.get(power / 10);
    }
}
