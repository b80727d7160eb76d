import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { costsOf, pictureOf, withNumbers } from '../../bench/comparison.ts';

const root = join(import.meta.dirname, '../..');

/** Results with the costs of embermq, aedes and mosquitto in each row. */
function results(rows: Readonly<Record<string, readonly [each: string, ...costs: string[]]>>): string {
  return `# Benchmark results

- 2031-05-06 07:08 UTC, Node 26.1.0, 2 x CPU, 24 GiB, linux 7.1
- embermq 0.3.0 (abc), aedes 1.7.2, mosquitto 2.1.4, raw Node 26.1.0

## Cost

The median.

| row | each | unit | embermq | aedes | mosquitto | x aedes |
| --- | --- | --- | --- | --- | --- | --- |
${Object.entries(rows)
  .map(([row, [each, ...costs]]) => `| ${row} | ${each} | us | ${costs.join(' | ')} | 1.0 |`)
  .join('\n')}

## Rates
`;
}

const ALL = results({
  'pairs100 q0 64B w20': ['message', '0.90 (0.69-0.95)', '29.09 (22.79-33.13)', '9.03 (7-9)'],
  'pairs100 q1 64B w20': ['message', '2.82 (2-3)', '44.19 (23-52)', '19.39 (17-21)'],
  'pairs100 q2 64B w20': ['message', '6.03 (5-7)', '136 (123-154)', '37.31 (36-37)'],
  'pairs500 q0 64B w1': ['message', '18.86 (16-25)', '46.56 (41-46)', '14.98 (13-15)'],
  'pairs100 q1 64B w20 durable': ['message', '7.32 (6-13)', '572 (246-647)', '-'],
  'idle 5000': ['connection', '8,114 (7,639-8,418)', '21,421 (21,330-21,506)', '732 (732-732)']
});

const README = `| a | b |
|---|---|
| | embermq | aedes 0 | mosquitto 0 |
|---|---|---|---|
| CPU for a message, QoS 0 / 1 / 2 in bursts | ? | ? | ? |
| the same, one message at a time (QoS 0) | ? | ? | ? |
| memory of an idle connection | ? | ? | ? |
| MQTT 5.0 | yes | no | yes |
`;

describe('The comparison in the README', () => {
  it('states the numbers of bench/RESULTS.md, and draws them (UPDATE_PAGES=1 writes both)', () => {
    const costs = costsOf(readFileSync(join(root, 'bench/RESULTS.md'), 'utf8'));
    const files = {
      'README.md': (text: string) => withNumbers(text, costs),
      'bench/comparison.svg': () => pictureOf(costs)
    };
    for (const [name, write] of Object.entries(files)) {
      const path = join(root, name);
      const right = write(readFileSync(path, 'utf8'));
      if (process.env.UPDATE_PAGES === '1') writeFileSync(path, right);
      assert.equal(readFileSync(path, 'utf8'), right, name);
    }
  });

  it('states medians and versions, and prints the best of each row in bold', () => {
    assert.equal(
      withNumbers(README, costsOf(ALL)),
      `| a | b |
|---|---|
| | embermq | aedes 1.7 | mosquitto 2.1 |
|---|---|---|---|
| CPU for a message, QoS 0 / 1 / 2 in bursts | **0.9 / 2.8 / 6.0 us** | 29 / 44 / 136 us | 9.0 / 19 / 37 us |
| the same, one message at a time (QoS 0) | 19 us | 47 us | **15 us** |
| memory of an idle connection | 8.1 kB | 21.4 kB | **0.7 kB** |
| MQTT 5.0 | yes | no | yes |
`
    );
  });

  it('prints nothing in bold where none of the brokers is the best in all values', () => {
    const mixed = withNumbers(README, costsOf(ALL.replace('37.31 (36-37)', '5.1')));
    assert.match(mixed, /bursts \| 0\.9 \/ 2\.8 \/ 6\.0 us \| 29 \/ 44 \/ 136 us \| 9\.0 \/ 19 \/ 5\.1 us \|/);
  });

  it('draws a bar for each broker that was measured, with the versions and the day', () => {
    const picture = pictureOf(costsOf(ALL));
    assert.match(picture, />embermq 0\.3\.0 \(abc\), aedes 1\.7\.2, mosquitto 2\.1\.4; Node 26\.1\.0, 2031-05-06</);
    const durable = picture.slice(picture.indexOf('kept on disk'));
    assert.deepEqual(
      [...durable.matchAll(/>([\d.]+ us)</g)].map(([, text]) => text),
      ['7.32 us', '572.00 us']
    );
  });

  it('requires each broker and each row', () => {
    assert.throws(() => costsOf(ALL.replace('aedes 1.7.2, ', '')), { message: 'results: aedes was not measured' });
    assert.throws(() => withNumbers(README, costsOf(ALL.replace('idle 5000', 'idle'))), {
      message: 'results: "idle 5000" was not measured with embermq'
    });
    assert.throws(() => withNumbers(README.replace('memory', 'Memory'), costsOf(ALL)), {
      message: 'the README has no row "memory of an idle connection"'
    });
    assert.throws(() => costsOf('# Results'), { message: /^results: expected the first lines/ });
  });
});
