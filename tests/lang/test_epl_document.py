"""Every statement that the document prints is deployed as it stands; what is refused is listed with what it is told.

The list is strict both ways: a refused statement that starts to run fails here until it leaves the list. What the
statements give is recorded in `tests/conformance/epl/doc_*.json`; this says that none of them was left out there.
"""

from __future__ import annotations

import pytest

from rollup.core.errors import RollupError
from rollup.live import Engine

DECLARED = """
create schema Withdrawal(account string, amount double);
create schema WithdrawalEvent(account int, amount double);
create schema LoginEvent(account int);
create schema BankInformation(bank string, city string);
create window BankInformationWindow#keepall as BankInformation;
create schema StockTickEvent(symbol string, price double);
create schema A(id int);
create schema B(id int);
create schema C(id int);
create schema EventX(objectID int);
create schema EventY(objectID int);
"""

STATEMENTS = """
select * from Withdrawal
select count(*), sum(amount) from Withdrawal
select * from Withdrawal(amount >= 200)
select count(*), sum(amount) from Withdrawal(amount >= 200)
select * from Withdrawal#length(5)
select count(*), sum(amount) from Withdrawal#length(5)
select * from Withdrawal(amount > 200)
select * from Withdrawal where amount > 200
select * from Withdrawal#length(5) where amount >= 200
select count(*), sum(amount) as total from Withdrawal#time(4)
create context Batch4Seconds start @now end after 4 sec; context Batch4Seconds select count(*), total(amount) from Withdrawal
select count(*), total(amount) from Withdrawal output last every 4 seconds
create context Batch4Seconds start @now end after 4 sec; context Batch4Seconds select count(*), total(amount) from Withdrawal output last when terminated
create window WithdrawalWindow#time(10) as Withdrawal; on Withdrawal merge WithdrawalWindow insert select *; select avg(amount) as avgAmount from WithdrawalWindow
select sum(amount, group_by:account) from Withdrawal
select * from Withdrawal unidirectional, BankInformationWindow
select sum(amount) from Withdrawal unidirectional, BankInformationWindow
select account, sum(amount) from Withdrawal unidirectional, BankInformationWindow
select account, sum(amount) from Withdrawal unidirectional, BankInformationWindow group by account
select * from pattern [every StockTickEvent(symbol="IBM", price>80) where timer:within(60 seconds)]
select * from pattern [every timer:at(5, *, *, *, *)]
select * from pattern [A -> ( B or C)]
select * from pattern [every a=EventX -> every b=EventY(objectID=a.objectID)]
@name('A') select * from WithdrawalEvent(account = 1)
@name('B') select * from WithdrawalEvent(account = 1)
@name('C') select * from WithdrawalEvent(account = 2)
@name('P') select * from pattern [every w1=WithdrawalEvent -> w2=WithdrawalEvent(account = w.account)]
@name('P') select * from pattern [every w1=WithdrawalEvent -> w2=WithdrawalEvent(account = w1.account)]
@name('A') create context UserSession initiated by LoginEvent as loginEvent; @name('B') context UserSession select count(*) from WithdrawalEvent(account = context.loginEvent.account)
"""

REFUSED = {
    "account = w.account)": ("no stream is called `w`", "a misprint of the document for w1"),
}
"""By a part of the statement: what it is told, and why it is refused."""


def _refusal(statement: str) -> str | None:
    return next((told for part, (told, _) in REFUSED.items() if part in statement), None)


@pytest.mark.parametrize("statement", STATEMENTS.strip().split("\n"))
def test_a_statement_of_the_document_is_deployed_or_refused_as_listed(statement: str) -> None:
    engine = Engine()
    engine.deploy(DECLARED, "declared")
    told = _refusal(statement)
    if told is None:
        engine.deploy(statement, "statement")
        return
    with pytest.raises(RollupError) as refused:
        engine.deploy(statement, "statement")
    assert told in refused.value.message
    assert (refused.value.line, refused.value.column) != (None, None)


def test_every_refusal_is_of_a_statement_of_the_document() -> None:
    assert all(part in STATEMENTS for part in REFUSED)
