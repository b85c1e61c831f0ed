// Asks the endpoint through pgx, whose parameters go as the type that the server names for them: PgxAsk URL.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

func main() {
	ctx := context.Background()
	connection, err := pgx.Connect(ctx, os.Args[1])
	if err != nil {
		fmt.Println("cannot connect:", err)
		os.Exit(1)
	}
	defer connection.Close(ctx)
	from := time.Date(2018, 1, 1, 0, 0, 0, 0, time.UTC)
	to := time.Date(2018, 2, 1, 0, 0, 0, 0, time.FixedZone("", 3600)).Add(time.Hour)
	text := "2006-01-02 15:04:05"
	ask := func(name string, sql string, values ...any) {
		var sum float64
		if err := connection.QueryRow(ctx, sql, values...).Scan(&sum); err != nil {
			fmt.Printf("%s: %v\n", name, err)
			return
		}
		fmt.Printf("%s: %v\n", name, sum)
	}
	clause := "SELECT sum(total) FROM TradeAgg WITHIN $1, $2 PER 'days' t"
	call := "SELECT sum(total) FROM TradeAgg($1, $2, $3) t"
	ask("clause int8", clause, from.UnixMilli(), to.UnixMilli())
	ask("clause timestamptz", clause, from, to)
	ask("clause text", clause, from.Format(text), to.UTC().Format(text))
	ask("call int8", call, from.UnixMilli(), to.UnixMilli(), "days")
	ask("call timestamptz", call, from, to, "days")
	ask("call text", call, from.Format(text), to.UTC().Format(text), "days")
	ask("pattern", "SELECT sum(total) FROM TradeAgg WITHIN $1 PER $2 t", "2018-01-** **:**:**", "days")
	ask("cast int8", "SELECT sum(total) FROM TradeAgg WITHIN $1::bigint, $2::bigint PER 'days' t", from.UnixMilli(), to.UnixMilli())
	ask("cast timestamptz", "SELECT sum(total) FROM TradeAgg WITHIN $1::timestamptz, $2::timestamptz PER 'days' t", from, to)
	ask("view", "SELECT sum(total) FROM \"TradeAgg_per_days\" WHERE \"AGG_TIME\" >= $1 AND \"AGG_TIME\" < $2", from, to)
}
