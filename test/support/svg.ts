/** The parts of the drawn pictures: dark on white, so that they are readable on light and dark pages. */

const [INK, GREY, ACCENT] = ['#212529', '#868e96', '#d9480f'];

export { ACCENT, GREY, INK };

/** A picture of some parts. */
export function picture(width: number, height: number, title: string, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="13" fill="${INK}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto"><path d="M0,0 L9,4 L0,8 z" fill="${GREY}"/></marker></defs>`,
    `<rect width="${width}" height="${height}" rx="6" fill="#ffffff"/>`,
    ...parts,
    '</svg>',
    ''
  ].join('\n');
}

export function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${x}" y="${y}"${attributes === '' ? '' : ` ${attributes}`}>${escaped(content)}</text>`;
}

export function box(x: number, y: number, width: number, height: number, attributes: string): string {
  return `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6" ${attributes}/>`;
}

/** A line with a head at its end. */
export function arrow(points: readonly (readonly [x: number, y: number])[]): string {
  const path = points.map(([x, y]) => `${x},${y}`).join(' ');
  return `<polyline points="${path}" fill="none" stroke="${GREY}" stroke-width="1.5" marker-end="url(#head)"/>`;
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
