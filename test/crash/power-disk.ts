import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Size of the file system. A broker with the load of a round needs a third of it. */
const IMAGE_MB = 160;
/** Maximum number of copies of an image that change while they are made. The kernel writes data of a stopped process for 30 s. */
const MAX_COPIES = 100;

/**
 * An ext4 file system in a file, which can lose power: data that was not yet written to its disk is lost.
 *
 * The image is copied while it is mounted. A copy counts only if the image has not changed until it was complete: otherwise it would
 * contain the blocks of different times, unlike any disk.
 */
export class PowerDisk {
  /** The folder of the broker, on the disk. */
  readonly folder: string;
  /** The mounted folder, which contains everything. */
  readonly home: string;
  readonly #image: string;
  readonly #mountPoint: string;
  #isMounted = false;

  private constructor(home: string) {
    this.home = home;
    this.#image = join(home, 'disk.img');
    this.#mountPoint = join(home, 'disk');
    this.folder = join(this.#mountPoint, 'data');
  }

  /** @throws Error if the machine does not permit it */
  static create(): PowerDisk {
    const disk = new PowerDisk(mkdtempSync(join(tmpdir(), 'embermq-power-')));
    try {
      mkdirSync(disk.#mountPoint);
      run('truncate', '-s', `${IMAGE_MB}M`, disk.#image);
      run('mkfs.ext4', '-q', '-F', disk.#image);
      disk.#mount();
    } catch (error) {
      disk.remove();
      throw error;
    }
    return disk;
  }

  /** Copy the content of the disk. Its writers must be suspended. @throws Error if the disk is never at rest */
  copy(): void {
    const fresh = join(this.home, 'copy.img');
    for (let attempt = 0; attempt < MAX_COPIES; attempt++) {
      copyFileSync(this.#image, fresh);
      if (readFileSync(this.#image).equals(readFileSync(fresh))) return;
    }
    throw new Error('the image of the disk changes all the time');
  }

  /** Continue with the copy, as after a loss of power. The disk must no longer be in use. */
  useCopy(): void {
    this.#unmount();
    renameSync(join(this.home, 'copy.img'), this.#image);
    this.#mount();
  }

  /** Unmount the disk. The image stays. */
  close(): void {
    if (this.#isMounted) this.#unmount();
  }

  remove(): void {
    this.close();
    rmSync(this.home, { recursive: true, force: true });
  }

  #mount(): void {
    run('mount', '-o', 'loop,commit=60', this.#image, this.#mountPoint);
    this.#isMounted = true;
  }

  #unmount(): void {
    run('umount', this.#mountPoint);
    this.#isMounted = false;
  }
}

/** @throws Error with the output of the program */
function run(program: string, ...args: readonly string[]): void {
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
  try {
    execFileSync(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    const { stderr, message } = error as Error & { readonly stderr?: Buffer };
    throw new Error(`${program}: ${String(stderr ?? '').trim() || message}`, { cause: error });
  }
}
