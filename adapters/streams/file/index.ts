/** Sources and sinks of stream rules that read and write files. */
export type { FolderOptions } from './places.ts';
export { type FileSinkOptions, fileSink } from './sink.ts';
export { type FileSourceOptions, fileSource } from './source.ts';
