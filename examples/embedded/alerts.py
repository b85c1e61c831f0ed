"""A rule over events of this process: three slow answers of one service within a minute."""

import rollup

engine = rollup.Engine()
engine.deploy("""
    create schema Answer(service string, millis int);
    @name('slow') select service, count(*) as answers
    from Answer(millis > 500)#time(1 min) group by service having count(*) >= 3;
""")
for second, service, millis in [
    (0, "pay", 700),
    (10, "pay", 900),
    (15, "ship", 800),
    (20, "pay", 600),
    (90, "pay", 650),
]:
    engine.send("Answer", {"service": service, "millis": millis}, at=second * 1000)
    for alert in engine.heard():
        print(f"{alert.at // 1000} s: {alert.new[0]['answers']} slow answers of {alert.new[0]['service']} in a minute")
