import { finished } from 'node:stream'
import type { MediaStore } from './media-store.ts'

export interface LastingStore {
  readonly store: Pick<MediaStore, 'open'>
  /** Resolves once the last file that was opened is sent, or broken off, and the store is closed. */
  close(): Promise<void>
}

/** A store that is read from, which closes when nobody reads any more: a client may download slowly. */
export function lasting(opened: { readonly store: Pick<MediaStore, 'open'>; close(): Promise<void> }): LastingStore {
  let reading = 0
  let unused: (() => void) | undefined

  function ended(): void {
    reading--
    if (reading === 0) unused?.()
  }

  return {
    store: {
      async open(digest, range) {
        reading++
        try {
          const content = await opened.store.open(digest, range)
          if (content === undefined) ended()
          else finished(content, ended)
          return content
        } catch (error) {
          ended()
          throw error
        }
      },
    },
    async close() {
      if (reading > 0) {
        await new Promise<void>((resolve) => {
          unused = resolve
        })
      }
      await opened.close()
    },
  }
}
