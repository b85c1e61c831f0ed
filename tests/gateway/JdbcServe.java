import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

/** What a BI tool asks of the endpoint through the JDBC driver; prints one line a step, which the test compares. */
public class JdbcServe {
    public static void main(String[] args) throws Exception {
        Class.forName("org.postgresql.Driver");
        Properties login = new Properties();
        login.setProperty("user", "ann");
        login.setProperty("password", args[1]);
        try (Connection db = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + args[0] + "/rollup", login)) {
            metadata(db);
            prepared(db);
            view(db);
            cursor(db);
        }
    }

    static void metadata(Connection db) throws SQLException {
        try (ResultSet tables = db.getMetaData().getTables(null, null, "%", new String[] {"TABLE", "VIEW"})) {
            while (tables.next()) System.out.println(tables.getString("TABLE_TYPE") + " " + tables.getString("TABLE_NAME"));
        }
        try (ResultSet columns = db.getMetaData().getColumns(null, "public", "TradeAgg_per_days", "%")) {
            while (columns.next()) System.out.println("column " + columns.getString("COLUMN_NAME") + " " + columns.getString("TYPE_NAME"));
        }
    }

    static void prepared(Connection db) throws SQLException {
        StringBuilder line = new StringBuilder("prepared");
        try (PreparedStatement query = db.prepareStatement("SELECT sum(total) FROM TradeAgg WITHIN ? PER ? t WHERE symbol = ?")) {
            for (int turn = 0; turn < 8; turn++) { // a named statement from the fifth on
                query.setString(1, turn % 2 == 0 ? "2018-01-** **:**:**" : "2018-02-** **:**:**");
                query.setString(2, turn % 3 == 0 ? "days" : "months");
                query.setString(3, "A");
                try (ResultSet rows = query.executeQuery()) {
                    rows.next();
                    line.append(' ').append((long) rows.getDouble(1));
                }
            }
        }
        System.out.println(line);
    }

    static void view(Connection db) throws SQLException {
        String sql = "SELECT symbol, sum(total) FROM \"TradeAgg_per_days\" WHERE \"AGG_TIME\" >= ? AND \"AGG_TIMESTAMP\" < ? GROUP BY 1 ORDER BY 1";
        try (PreparedStatement query = db.prepareStatement(sql)) {
            query.setTimestamp(1, new java.sql.Timestamp(1515542400000L)); // 10 January 2018
            query.setLong(2, 1515715200000L); // 12 January
            try (ResultSet rows = query.executeQuery()) {
                while (rows.next()) System.out.println("view " + rows.getString(1) + " " + (long) rows.getDouble(2));
            }
        }
    }

    static void cursor(Connection db) throws SQLException {
        db.setAutoCommit(false);
        int count = 0;
        try (Statement query = db.createStatement()) {
            query.setFetchSize(13);
            try (ResultSet rows = query.executeQuery("SELECT * FROM \"TradeAgg within 2018-01-** **:**:** per hours\"")) {
                while (rows.next()) count++;
            }
        }
        db.commit();
        System.out.println("cursor " + count);
    }
}
