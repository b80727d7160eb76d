import type { Sample } from './metric-row.ts';

/** A metric with its values. */
export interface Family {
  /** The name without `_total`. */
  readonly name: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly about: string;
  readonly samples: readonly Sample[];
}

/** A text format for metrics. */
interface Exposition {
  readonly contentType: string;
  /** @param labels labels of all samples */
  write(families: readonly Family[], labels: Readonly<Record<string, string>>): string;
}

/** The text format of Prometheus. */
export const PROMETHEUS_TEXT: Exposition = {
  contentType: 'text/plain; version=0.0.4; charset=utf-8',
  write: (families, labels) =>
    families
      .map((family) => {
        const name = sampleName(family);
        const head = `# HELP ${name} ${escapedHelp(family.about)}\n# TYPE ${name} ${family.kind}\n`;
        return head + samplesOf(family, labels);
      })
      .join('')
};

/** OpenMetrics 1.0. */
export const OPEN_METRICS: Exposition = {
  contentType: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  write: (families, labels) => {
    const written = families.map((family) => {
      const { name, kind, about } = family;
      const [, unit] = /_(bytes|seconds)$/.exec(name) ?? [];
      const unitLine = unit === undefined ? '' : `# UNIT ${name} ${unit}\n`;
      return `# TYPE ${name} ${kind}\n${unitLine}# HELP ${name} ${escaped(about)}\n${samplesOf(family, labels)}`;
    });
    return `${written.join('')}# EOF\n`;
  }
};

/** The format for a request: OpenMetrics if it is accepted with at least the weight of plain text. */
export function expositionFor(accept: string | undefined): Exposition {
  if (accept === undefined) return PROMETHEUS_TEXT;
  let open = 0;
  let plain = 0;
  for (const part of accept.toLowerCase().split(',')) {
    const [type, ...parameters] = part.split(';').map((text) => text.trim());
    const quality = Number(parameters.find((text) => text.startsWith('q='))?.slice(2) ?? 1) || 0;
    if (type === 'application/openmetrics-text') open = Math.max(open, quality);
    else if (type === 'text/plain' || type === 'text/*' || type === '*/*') plain = Math.max(plain, quality);
  }
  return open > 0 && open >= plain ? OPEN_METRICS : PROMETHEUS_TEXT;
}

function sampleName({ name, kind }: Family): string {
  return kind === 'counter' ? `${name}_total` : name;
}

function samplesOf(family: Family, common: Readonly<Record<string, string>>): string {
  const name = sampleName(family);
  return family.samples
    .map(({ suffix = '', labels, value }) => {
      const written = Object.entries({ ...common, ...labels }).map(([label, text]) => `${label}="${escaped(text)}"`);
      return `${name}${suffix}{${written.join(',')}} ${numberText(value)}\n`;
    })
    .join('');
}

function numberText(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : String(value);
}

function escaped(text: string): string {
  return escapedHelp(text).replaceAll('"', '\\"');
}

function escapedHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
