import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { createGuardedClient, type GuardedClient } from '../../outbound/http.ts'
import { MAX_STORE_CONNECTIONS } from '../limits.ts'
import { createDirectoryStore } from './directory-store.ts'
import type { MediaStore } from './media-store.ts'
import { createS3Store } from './s3-store.ts'

/** Where files arrive, on the same file system as the store of files in a directory. */
export const incomingDirectory = (dataDir: string): string => join(dataDir, 'media', 'incoming')

/** The store of media that the configuration names. Connections to an external one are made when it is first used. */
export function openMediaStore(deps: {
  readonly config: Pick<Config, 'data_dir' | 'media' | 'outbound'>
  readonly log: Logger
}): { readonly store: MediaStore; close(): Promise<void> } {
  const { config, log } = deps
  if (config.media.store === 'directory') {
    return { store: createDirectoryStore(join(config.data_dir, 'media', 'files')), close: async () => {} }
  }
  let opened: Promise<GuardedClient> | undefined
  const client = () => {
    opened ??= createGuardedClient({ config, log, connections: MAX_STORE_CONNECTIONS })
    return opened
  }
  return { store: createS3Store(config.media.s3, client), close: async () => (await opened)?.close() }
}
