import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TimeZone;

/** Answers SQL by Calcite in memory: a statement a line as a JSON text, an answer a line: its rows, or its error. */
public final class Peer {
  public static void main(String[] arguments) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    Properties properties = new Properties();
    properties.setProperty("parserFactory", "org.apache.calcite.server.ServerDdlExecutor#PARSER_FACTORY");
    properties.setProperty("caseSensitive", "false");
    ObjectMapper json = new ObjectMapper();
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (Connection connection = DriverManager.getConnection("jdbc:calcite:", properties)) {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        out.println(json.writeValueAsString(answer(connection, json.readValue(line, String.class))));
      }
    }
  }

  private static Map<String, Object> answer(Connection connection, String sql) {
    try (Statement statement = connection.createStatement()) {
      if (!statement.execute(sql)) {
        return Map.of("rows", List.of());
      }
      try (ResultSet result = statement.getResultSet()) {
        return Map.of("rows", rows(result));
      }
    } catch (Exception | AssertionError | StackOverflowError | LinkageError problem) {
      Throwable cause = problem;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      return Map.of("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
    }
  }

  private static List<List<Object>> rows(ResultSet result) throws Exception {
    int width = result.getMetaData().getColumnCount();
    List<List<Object>> rows = new ArrayList<>();
    while (result.next()) {
      List<Object> row = new ArrayList<>();
      for (int column = 1; column <= width; column++) {
        Object value = result.getObject(column);
        boolean plain = value == null || value instanceof Number || value instanceof Boolean;
        boolean finite = !(value instanceof Double number) || Double.isFinite(number);
        row.add(plain && finite ? value : value.toString());
      }
      rows.add(row);
    }
    return rows;
  }
}
