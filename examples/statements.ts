// Statements without a broker, for unit tests of SQL: a rule over events, and a stream rule over rows with times on a
// separate clock.
import { compileRule } from 'embermq/rules';
import { compileStreamRule } from 'embermq/streams';

const hot = await compileRule('SELECT payload.celsius AS celsius FROM "sensors/#" WHERE celsius > 80');
for (const celsius of [79, 81]) {
  const { result, outputs } = hot.run({ topic: 'sensors/kiln', payload: JSON.stringify({ celsius }) });
  console.log(celsius, result, outputs);
}

const means = await compileStreamRule('SELECT avg(celsius) AS mean FROM sensors GROUP BY TUMBLINGWINDOW(ss, 10)');
const { outputs } = means.run([
  { stream: 'sensors', values: { celsius: 20 }, at: 1_000 }, // milliseconds
  { stream: 'sensors', values: { celsius: 22 }, at: 9_000 },
  { stream: 'sensors', values: { celsius: 30 }, at: 12_000 }
]);
console.log(JSON.stringify(outputs));

try {
  await compileRule('SELECT payload.celsius FORM "sensors/#"');
} catch (error) {
  console.log(String(error));
}
// prints:
// 79 where []
// 81 matched [ { celsius: 81 } ]
// [{"at":10000,"rows":[{"mean":21}]},{"at":20000,"rows":[{"mean":30}]}]
// SqlError: syntax error before: "\"sensors/#\"": expected FROM at line 1, column 29
//   SELECT payload.celsius FORM "sensors/#"
//                               ^
