import { Readable } from 'node:stream'
import { ProtocolError } from '../../../core/errors.ts'
import { localpartOf } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { whenSubmitted } from '../signed-in.ts'
import { DATA_PAGE, dataPage } from './data-page.ts'
import { paced } from './paced.ts'

/** The archive is made as fast as the browser takes it. It ends when the browser goes away. */
export const downloadData = endpoint(
  'POST /_hearth/account/data',
  { auth: 'none', limited: 'login', body: Type.Object({ form: Type.Optional(Type.String()) }), forms: true },
  (request, services) =>
    whenSubmitted(request, services, { proof: 'just now', next: DATA_PAGE }, async (owner) => {
      const { media, oauth } = services
      const archive = oauth.ownData.archive(owner.session, ({ digest, bytes }) =>
        media.downloads.open({ digest, bytes, contentType: '', fileName: undefined, isRemote: false }),
      )
      try {
        // The first piece says whether it can be made now.
        const first = await archive.next()
        const pieces = paced(joined(first.value as Buffer, archive), () => body.destroy())
        const body = Readable.from(pieces, { objectMode: false })
        const name = localpartOf(owner.session.userId).replace(/[^\w.-]/g, '_')
        return rawReply({
          headers: {
            'content-type': 'application/x-tar',
            'content-disposition': `attachment; filename="${name}.tar"`,
            'cache-control': 'no-store',
            'x-content-type-options': 'nosniff',
          },
          body,
          closed() {
            body.destroy()
            // Also for a browser that was gone before the first piece: the body then never asks for the rest.
            void archive.return(undefined)
          },
        })
      } catch (error) {
        if (!(error instanceof ProtocolError) || error.status >= 500) throw error
        return dataPage(services, request, owner, error)
      }
    }),
)

async function* joined(first: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield first
    yield* rest
  } finally {
    await rest.return(undefined)
  }
}
