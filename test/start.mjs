// Compiles the sources and runs a program of this folder with them: `node test/start.mjs conformance`.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compile, compiledOf } from './compile.mjs';

await compile();
const [name] = process.argv.splice(2, 1);
await import(pathToFileURL(compiledOf(join(import.meta.dirname, `${name}.ts`))).href);
