-- One way to call an aggregation: {function} takes {parameters}, of which the first is the spec when the gateway calls.

create function {function}({parameters}) returns table ({columns})
    stable language sql rows 1000
    as $$ select * from {ask}({arguments}) $$;

comment on function {function}({parameters}) is {comment};
