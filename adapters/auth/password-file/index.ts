/// <reference types="node" preserve="true" />
/** A source of authentication that reads users and the hashes of their passwords from a file. */
export { type EditPasswordFileOptions, editPasswordFile, type PasswordFileEdit } from './edit.ts';
export { type PasswordFileOptions, passwordFile } from './source.ts';
