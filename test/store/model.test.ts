import { describe, it } from 'node:test';
import { readSeed, samples, shownSeed } from '../support/samples.ts';
import { Model } from './model.ts';

const SEEDS = Number(process.env.SEEDS ?? (process.env.SEED === undefined ? samples(20) : 1));
const STEPS = Number(process.env.STEPS ?? 150);
const first = readSeed();
console.log(`# random deaths: ${shownSeed(first)}`);

describe('A broker that crashes at random moments', () => {
  for (let seed = first; seed < first + SEEDS; seed++)
    it(`loses nothing that it has acknowledged, and repeats nothing of QoS 2 (seed ${seed})`, () =>
      new Model(seed).run(STEPS));
});

describe('A broker that crashes at random moments, with a store that fails at others', () => {
  for (let seed = first; seed < first + SEEDS; seed++)
    it(`loses nothing that it has acknowledged, and repeats nothing of QoS 2 (seed ${seed})`, () =>
      new Model(seed, { fails: true }).run(STEPS));
});
