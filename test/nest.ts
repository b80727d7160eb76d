// `node --import tsx test/nest.ts [VERSIONS]`: compiles and starts a Nest app that imports the packed package, with the packages and the settings of the
// compiler that `nest new` gives to an app: CommonJS, found with `node10` in Nest 10 and with `nodenext` in Nest 12. The packages stay in `.cache`.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const versions = process.argv.length > 2 ? process.argv.slice(2) : ['10', '12'];

/** A broker that Nest creates, injects by its class and stops. */
const APP = `
import { Controller, Get, Module, type OnApplicationShutdown } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Broker, type BrokerEvents, createBroker, InvalidInput } from 'embermq';
import { listen } from 'embermq/net';

@Controller()
class Devices implements OnApplicationShutdown {
  readonly seen: string[] = [];

  constructor(readonly broker: Broker) {
    broker.on('client.connected', ({ client }: BrokerEvents['client.connected']) => this.seen.push(client.clientId));
  }

  @Get()
  list(): string[] {
    return this.seen;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.broker.stop();
  }
}

const broker = { provide: Broker, useFactory: () => createBroker().start() };

@Module({ controllers: [Devices], providers: [broker] })
class AppModule {}

async function bootstrap(): Promise<void> {
  const app = await NestFactory.create(AppModule, { logger: false });
  await app.listen(0, '127.0.0.1');
  const injected: Broker = app.get(Broker);
  await listen(injected, 0);
  await injected.connect({ clientId: 'heating' });
  console.log(await (await fetch(await app.getUrl())).text());
  await injected.connect({ clientId: 'x', keepalive: -1 }).catch((error) => console.log(error instanceof InvalidInput));
  await app.close();
}
void bootstrap();
`;

function npm(args: readonly string[], cwd: string): void {
  execFileSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd,
    stdio: ['ignore', 'ignore', 2]
  });
}

/** Makes the folder of an app as `nest new` does, without the packages for its tests. */
function createApp(folder: string, version: string): void {
  mkdirSync(join(folder, 'src'), { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  npm(['install', '--no-save', '--ignore-scripts', `@nestjs/schematics@${version}`], folder);
  const templates = join(folder, 'node_modules/@nestjs/schematics/dist/lib/application/files/ts');
  const template = (name: string) =>
    readFileSync(join(templates, name), 'utf8')
      .replace(/<% if .*?<% } %>/gs, '')
      .replace(/<%= strict %>/g, 'true');
  writeFileSync(join(folder, 'tsconfig.json'), template('tsconfig.json'));
  const { dependencies, devDependencies } = JSON.parse(template('package.json')) as Record<
    string,
    Record<string, string>
  >;
  const compiler = Object.entries(devDependencies).filter(([name]) => /^(@types\/(node|jest)|typescript)$/.test(name));
  const manifest = { private: true, dependencies: { ...dependencies, ...Object.fromEntries(compiler) } };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'src/main.ts'), APP);
}

execFileSync(process.execPath, ['.ci/build.mjs', '--if-stale'], { cwd: root, stdio: ['ignore', 2, 2] });
for (const version of versions) {
  const folder = join(root, `.cache/nest-${version}`);
  createApp(folder, version);
  for (const name of readdirSync(folder)) if (name.endsWith('.tgz')) rmSync(join(folder, name));
  npm(['pack', '--ignore-scripts', '--pack-destination', folder], root);
  const packed = readdirSync(folder).find((name) => name.endsWith('.tgz')) as string;
  npm(['install', '--ignore-scripts', `./${packed}`], folder);
  const run = (...args: readonly string[]) =>
    execFileSync(process.execPath, args, {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 2],
      timeout: 120_000
    });
  const tsc = 'node_modules/typescript/bin/tsc';
  process.stdout.write(run(tsc, '-p', '.', '--rootDir', 'src', '--outDir', 'dist'));
  const printed = run('dist/main.js');
  const { version: nest } = JSON.parse(readFileSync(join(folder, 'node_modules/@nestjs/core/package.json'), 'utf8'));
  const isRight = printed === '["heating"]\ntrue\n';
  process.stdout.write(`nest ${nest}, ${run(tsc, '--version').trim()}: ${isRight ? 'starts' : `FAILED: ${printed}`}\n`);
  if (!isRight) process.exitCode = 1;
}
