import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bridge } from '../../adapters/bridge/index.ts';
import {
  healthHandler,
  managementApi,
  managementApis,
  metricsHandler,
  observeMetrics
} from '../../adapters/management/index.ts';
import { listen, listenHttp, upgradeHandler } from '../../adapters/net/index.ts';
import { streamsApi } from '../../adapters/streams-api/index.ts';
import { webhook } from '../../adapters/webhook/index.ts';

const CALLS = {
  bridge,
  healthHandler,
  listen,
  listenHttp,
  managementApi,
  managementApis,
  metricsHandler,
  observeMetrics,
  streamsApi,
  upgradeHandler,
  webhook
};

describe('Functions that take a broker as their first argument', () => {
  for (const [name, call] of Object.entries(CALLS))
    it(`${name} reports a missing broker, or a value that is not one`, () => {
      for (const broker of [undefined, null, {}, 1883, 'mqtt://127.0.0.1'])
        assert.throws(() => (call as (broker: unknown) => unknown)(broker), {
          ...{ name: 'InvalidInput', code: 'OPTION_INVALID', field: name },
          message: new RegExp(`^${name}: expected a broker, which createBroker returns, as the first argument, got `)
        });
    });
});
