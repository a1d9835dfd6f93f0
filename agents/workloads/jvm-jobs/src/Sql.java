import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Random;

/** A short job with a database in memory: it fills two tables, joins and groups them, and prints the sums. */
public final class Sql {
    private static final int CUSTOMERS = 2_000;
    private static final int ORDERS = 30_000;

    public static void main(String[] arguments) throws SQLException {
        try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:")) {
            fill(connection);
            try (Statement statement = connection.createStatement()) {
                print(statement, "select region, count(*), sum(amount) from orders join customer on customer = id "
                        + "group by region order by region");
                print(statement, "select id, sum(amount) as total from orders join customer on customer = id "
                        + "where name like '%7%' group by id order by total desc, id limit 20");
                for (int day = 0; day < 365; day += 5) {
                    print(statement, "select count(distinct customer), max(amount) from orders where placed between "
                            + day + " and " + (day + 4));
                }
            }
        }
    }

    private static void fill(Connection connection) throws SQLException {
        Random random = new Random(1);
        try (Statement statement = connection.createStatement()) {
            statement.execute("create table customer (id int primary key, region int, name varchar)");
            statement.execute("create table orders (customer int, placed int, amount int)");
        }
        try (PreparedStatement insert = connection.prepareStatement("insert into customer values (?, ?, ?)")) {
            for (int id = 0; id < CUSTOMERS; id++) {
                insert.setInt(1, id);
                insert.setInt(2, random.nextInt(12));
                insert.setString(3, "customer " + random.nextInt(100_000));
                insert.executeUpdate();
            }
        }
        try (PreparedStatement insert = connection.prepareStatement("insert into orders values (?, ?, ?)")) {
            for (int number = 0; number < ORDERS; number++) {
                insert.setInt(1, random.nextInt(CUSTOMERS));
                insert.setInt(2, random.nextInt(365));
                insert.setInt(3, 1 + random.nextInt(10_000));
                insert.executeUpdate();
            }
        }
        try (Statement statement = connection.createStatement()) {
            statement.execute("create index by_day on orders (placed)");
        }
    }

    private static void print(Statement statement, String query) throws SQLException {
        try (ResultSet rows = statement.executeQuery(query)) {
            int columns = rows.getMetaData().getColumnCount();
            while (rows.next()) {
                StringBuilder line = new StringBuilder();
                for (int column = 1; column <= columns; column++) {
                    line.append(rows.getLong(column)).append(' ');
                }
                System.out.println(line);
            }
        }
    }
}
