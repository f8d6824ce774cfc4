import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config/schema.ts'
import type { Random } from '../clock.ts'

const NAME = 'place'
const NAME_BYTES = 16

/**
 * Where this node keeps the files of users, so that two nodes can be compared. A directory has a file with a random name in it: nodes that
 * mount the same directory read the same name.
 *
 * @throws Error if the directory cannot be used
 */
export async function filePlaceOf(config: Pick<Config, 'data_dir' | 'media'>, random: Random): Promise<string> {
  const { store, s3 } = config.media
  if (store === 's3') return `${s3.endpoint} ${s3.bucket}`
  const directory = join(config.data_dir, 'media')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, NAME)
  try {
    await writeFile(path, random.bytes(NAME_BYTES).toString('hex'), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return `directory ${(await readFile(path, 'utf8')).trim()}`
}
