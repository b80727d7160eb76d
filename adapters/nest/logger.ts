import type { Logger } from '../../lib/index.ts';

/** The levels of a logger of Nest. */
const LEVELS = { error: 'error', warn: 'warn', info: 'log', debug: 'debug' } as const;

type NestLevel = (typeof LEVELS)[keyof typeof LEVELS];

/** The part of the class `Logger` of Nest that is used. */
interface NestLoggerClass {
  new (context: string): Readonly<Record<NestLevel, (line: string) => void>>;
  isLevelEnabled(level: NestLevel): boolean;
  /** The levels that the app has chosen. Undefined: all, for which `isLevelEnabled` of Nest 10 answers false. */
  readonly logLevels?: readonly string[];
}

/** The logger of the app, as a logger of a broker; undefined without the package `@nestjs/common`, as in tests of the module alone. */
export async function nestLogger(): Promise<Logger | undefined> {
  const name: string = '@nestjs/common';
  const found = await import(name).catch(() => undefined);
  if (found === undefined) return undefined;
  const { Logger } = found as { readonly Logger: NestLoggerClass };
  const logger = new Logger('Embermq');
  const write = (level: keyof typeof LEVELS) => (message: string, fields?: object) =>
    logger[LEVELS[level]](fields === undefined ? message : `${message} ${JSON.stringify(fields)}`);
  return {
    error: write('error'),
    warn: write('warn'),
    info: write('info'),
    debug: write('debug'),
    isLevelEnabled: (level) =>
      Logger.logLevels === undefined || Logger.isLevelEnabled(LEVELS[level as keyof typeof LEVELS])
  };
}
