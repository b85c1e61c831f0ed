import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;

/** What a BI tool does through the JDBC driver; prints one line a step, which the test compares. */
public class JdbcClient {
    static final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        Class.forName("org.postgresql.Driver");
        Properties login = new Properties();
        login.setProperty("user", args[1]);
        login.setProperty("password", args[2]);
        try (Connection db = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + args[0] + "/served", login)) {
            metadata(db);
            prepared(db);
            cursor(db);
            refused(db);
            cancelled(db);
        }
    }

    static void metadata(Connection db) throws SQLException {
        try (ResultSet tables = db.getMetaData().getTables(null, "rollups", "%", new String[] {"TABLE", "VIEW"})) {
            while (tables.next()) out.println("table " + tables.getString("TABLE_NAME") + " " + tables.getString("REMARKS"));
        }
        try (ResultSet columns = db.getMetaData().getColumns(null, "rollups", "days", "%")) {
            while (columns.next()) out.println("column " + columns.getString("COLUMN_NAME") + " " + columns.getString("TYPE_NAME"));
        }
    }

    static void prepared(Connection db) throws SQLException {
        StringBuilder line = new StringBuilder("prepared");
        try (PreparedStatement query = db.prepareStatement("SELECT n + ? FROM ANSWER")) {
            for (int turn = 0; turn < 8; turn++) { // a named statement and binary results from the fifth on
                query.setInt(1, turn);
                try (ResultSet rows = query.executeQuery()) {
                    rows.next();
                    line.append(' ').append(rows.getInt(1));
                }
            }
        }
        out.println(line);
    }

    static void cursor(Connection db) throws SQLException {
        db.setAutoCommit(false);
        int count = 0;
        try (Statement query = db.createStatement()) {
            query.setFetchSize(997);
            try (ResultSet rows = query.executeQuery("SELECT ts, symbol, total FROM days")) {
                while (rows.next()) count++;
            }
        }
        db.commit();
        db.setAutoCommit(true);
        out.println("cursor " + count);
    }

    static void refused(Connection db) throws SQLException {
        try (Statement query = db.createStatement()) {
            query.executeQuery("SELECT REFUSED FROM ANSWER");
        } catch (SQLException problem) {
            out.println("refused " + problem.getSQLState() + " " + problem.getMessage().lines().findFirst().get());
        }
        try (Statement query = db.createStatement()) {
            query.execute("SELECT 1; SELECT n FROM ANSWER");
            query.getMoreResults();
            query.getResultSet().next();
            out.println("batch " + query.getResultSet().getInt(1));
        }
    }

    static void cancelled(Connection db) throws SQLException {
        try (Statement query = db.createStatement()) {
            query.setQueryTimeout(1);
            query.executeQuery("SELECT pg_sleep(30)");
        } catch (SQLException problem) {
            out.println("cancelled " + problem.getSQLState());
        }
        try (Statement query = db.createStatement(); ResultSet rows = query.executeQuery("SELECT n FROM ANSWER")) {
            rows.next();
            out.println("still " + rows.getInt(1));
        }
    }
}
