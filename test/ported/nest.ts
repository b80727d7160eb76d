// Real apps of Nest with embermq/nest: the programs of its page, with Nest 10 as CommonJS and with Nest 12 in both forms.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import ts from 'typescript';
import { freePorts } from '../support/free-ports.ts';
import { promised } from '../support/pages.ts';
import { installed, outputOf, packed } from './installed.ts';

const page = readFileSync(join(import.meta.dirname, '../../adapters/nest/README.md'), 'utf8');
const programs = [...page.matchAll(/^```typescript\n(.*?)^```$/gms)].map(([, code]) => code);

assert.ok(programs.length >= 5);

const VERSIONS = ['10', '12'];
/** The forms into which apps in TypeScript are compiled. Nest 10 has only CommonJS. */
const FORMS = [
  { version: '10', name: 'cjs', module: ts.ModuleKind.CommonJS },
  { version: '12', name: 'cjs', module: ts.ModuleKind.CommonJS },
  { version: '12', name: 'mjs', module: ts.ModuleKind.ESNext }
];

const DECORATORS = { experimentalDecorators: true, emitDecoratorMetadata: true, target: ts.ScriptTarget.ES2022 };

const folders: Record<string, string> = {};

before(() => {
  const embermq = packed();
  for (const version of VERSIONS) {
    const nest = ['common', 'core', 'microservices', 'platform-express', 'platform-fastify', 'testing'];
    folders[version] = installed(`nest-${version}`, {
      dependencies: {
        ...Object.fromEntries(nest.map((name) => [`@nestjs/${name}`, `^${version}.0.0`])),
        embermq,
        mqtt: '5',
        'reflect-metadata': '0.2',
        rxjs: '7',
        '@types/node': '20'
      }
    });
  }
});

/** Runs a program with free ports in place of those in its text. */
async function run(code: string, { version, name, module }: (typeof FORMS)[number]): Promise<string> {
  const folder = join(folders[version], 'programs');
  const [mqtt, http] = await freePorts(2);
  const file = join(folder, `${mqtt}.${name}`);
  const text = code.replaceAll('1883', String(mqtt)).replaceAll('3000', String(http));
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, ts.transpile(text, { ...DECORATORS, module, esModuleInterop: true }));
  try {
    return await outputOf(process.execPath, file, folder);
  } finally {
    rmSync(file);
  }
}

describe('embermq/nest with real apps', () => {
  for (const form of FORMS)
    for (const [at, code] of programs.entries())
      it(`runs program ${at + 1} of its page with Nest ${form.version} as ${form.name}`, async () => {
        assert.equal(await run(code, form), promised(code));
      });

  for (const form of FORMS)
    it(`serves the REST interface and MQTT over WebSocket on Fastify, with Nest ${form.version} as ${form.name}`, async () => {
      const code = programs.find((program) => program.includes('/api/v4/clients')) ?? assert.fail();
      const onFastify = code
        .replace(
          "from '@nestjs/core';",
          "from '@nestjs/core';\nimport { FastifyAdapter } from '@nestjs/platform-fastify';\nimport mqtt from 'mqtt';"
        )
        .replace('NestFactory.create(AppModule, {', 'NestFactory.create(AppModule, new FastifyAdapter(), {')
        .replace(
          '  await app.close();',
          `  const client = await mqtt.connectAsync('ws://localhost:3000/mqtt', { protocolVersion: 5, reconnectPeriod: 0 });
  client.on('disconnect', ({ reasonCode }) => console.log('disconnect', reasonCode));
  await app.close();`
        );
      assert.equal(await run(onFastify, form), `${promised(code)}disconnect 139\n`);
    });

  for (const form of FORMS)
    it(`passes a port in use to init, and the app can be closed, with Nest ${form.version} as ${form.name}`, async () => {
      const code = `
        import 'reflect-metadata';
        import { createServer } from 'node:net';
        import { once } from 'node:events';
        import { Module } from '@nestjs/common';
        import { NestFactory } from '@nestjs/core';
        import { BROKER, EmbermqModule } from 'embermq/nest';

        async function bootstrap() {
          const taken = createServer().listen(1883);
          await once(taken, 'listening');
          @Module({ imports: [EmbermqModule.forRoot({ listen: 1883 })] })
          class AppModule {}
          const app = await NestFactory.create(AppModule, { logger: false });
          await app.init().catch((error) => console.log(error.code));
          await app.close();
          console.log(app.get(BROKER).state);
          taken.close();
        }
        bootstrap();
      `;
      assert.match(await run(code, form), /^LISTENER_BIND_FAILED\n(idle|disconnected)\n$/);
    });

  for (const form of FORMS)
    it(`gives modules separate brokers, logs to Nest, and stops at a signal, with Nest ${form.version} as ${form.name}`, async () => {
      const code = `
        import 'reflect-metadata';
        import { Inject, Injectable, Module } from '@nestjs/common';
        import { NestFactory } from '@nestjs/core';
        import { Transport } from '@nestjs/microservices';
        import { BROKER, EmbermqModule } from 'embermq/nest';

        @Injectable()
        class North { constructor(@Inject(BROKER) readonly broker: any) {} }
        @Injectable()
        class South { constructor(@Inject(BROKER) readonly broker: any) {} }
        const make = (node: string, listen: number[] = []) =>
          EmbermqModule.forRoot({ broker: { node }, listen, webSocket: '/' + node, global: false });
        @Module({ imports: [make('north', [1883])], providers: [North] })
        class NorthModule {}
        @Module({ imports: [make('south')], providers: [South] })
        class SouthModule {}
        @Module({ imports: [NorthModule, SouthModule] })
        class AppModule {}

        async function bootstrap() {
          const lines: string[] = [];
          const write = (line: string, context: string) => context === 'Embermq' && lines.push(line.split(' {')[0]);
          const logger = { log: write, warn: write, error: write, debug: write, verbose: write, fatal: write };
          const app = await NestFactory.createMicroservice(AppModule, {
            transport: Transport.MQTT,
            options: { url: 'mqtt://127.0.0.1:1883' },
            logger
          } as any);
          app.enableShutdownHooks(['SIGTERM']);
          await app.listen();
          const brokers = [app.get(North, { strict: false }).broker, app.get(South, { strict: false }).broker];
          console.log(...brokers.map(({ sessions }) => sessions.count));
          console.log(lines.join());
          let stopped = 0;
          for (const broker of brokers)
            broker.on('broker.stopped', () => {
              console.log('stopped');
              if (++stopped === 2) process.exit();
            });
          process.on('SIGTERM', () => {}); // Nest sends it again
          process.kill(process.pid, 'SIGTERM');
        }
        bootstrap();
      `;
      assert.equal(
        await run(code, form),
        '1 0\nbroker started,broker started,session created,client connected\nstopped\nstopped\n'
      );
    });

  for (const version of VERSIONS)
    it(`compiles the programs of its page with the types of Nest ${version}`, () => {
      const folder = join(folders[version], 'programs');
      mkdirSync(folder, { recursive: true });
      const files = programs.map((code, at) => {
        const file = join(folder, `page-${at}.ts`);
        writeFileSync(file, code);
        return file;
      });
      const program = ts.createProgram(files, {
        ...DECORATORS,
        module: ts.ModuleKind.NodeNext,
        strict: true,
        skipLibCheck: true,
        noEmit: true,
        types: ['node']
      });
      const faults = ts.getPreEmitDiagnostics(program);
      assert.deepEqual(
        faults.map(
          ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
        ),
        []
      );
    });
});
