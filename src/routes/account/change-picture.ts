import { ProtocolError } from '../../core/errors.ts'
import { IMAGE_HEADER_BYTES, readImageHeader } from '../../core/media/image-header.ts'
import { writeMxc } from '../../core/mxc.ts'
import { Type } from '../../core/shapes.ts'
import { accountSuspended } from '../../domain/accounts/requester.ts'
import { MAX_PICTURE_BYTES } from '../../domain/limits/oauth.ts'
import type { Upload } from '../../domain/media/uploads.ts'
import { requesterOf } from '../../domain/oauth/own-account.ts'
import { endpoint } from '../../http/endpoint.ts'
import { boundaryOf, fileInForm } from '../../http/multipart.ts'
import { accountPage, doneWith } from './account-page.ts'
import { whenUploaded } from './signed-in.ts'

/** Takes the picture that others see beside a person's name. The proof of the form is in the address, because the body is the file. */
export const changePicture = endpoint(
  'POST /_hearth/account/picture',
  { auth: 'none', limited: 'media', streamed: true, query: Type.Object({ form: Type.Optional(Type.String()) }) },
  (request, services) =>
    whenUploaded(request, services, { proof: 'signed in', next: '/_hearth/account' }, async (owner) => {
      try {
        if (owner.session.isSuspended) throw accountSuspended()
        const boundary = boundaryOf(request.header('content-type'))
        if (boundary === undefined) throw noPicture()
        const requester = requesterOf(owner.session)
        const picture = await pictureIn(fileInForm(request.stream, boundary))
        const mxc = await services.media.uploads.upload(requester, picture)
        await services.profiles.change(requester, { avatar_url: writeMxc(mxc) })
        return doneWith('picture_changed')
      } catch (error) {
        if (!(error instanceof ProtocolError) || error.status >= 500) throw error
        return accountPage(services, request, owner, { problem: error })
      }
    }),
)

function noPicture(): ProtocolError {
  return new ProtocolError('M_INVALID_PARAM', 'Choose a picture: a JPEG, PNG, GIF or WebP file.')
}

/** Reads the beginning of a file, which must be that of a picture. @throws ProtocolError `M_INVALID_PARAM` */
async function pictureIn(file: AsyncGenerator<Buffer>): Promise<Upload> {
  const pieces: Buffer[] = []
  for (let read = 0; read < IMAGE_HEADER_BYTES; ) {
    const { value, done } = await file.next()
    if (done) break
    pieces.push(value)
    read += value.length
  }
  const header = readImageHeader(Buffer.concat(pieces))
  if (header === undefined) throw noPicture()
  return { source: limited(pieces, file), contentType: header.type, fileName: undefined, announcedBytes: undefined }
}

async function* limited(pieces: readonly Buffer[], rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes = 0
  async function* all() {
    yield* pieces
    yield* rest
  }
  for await (const piece of all()) {
    bytes += piece.length
    if (bytes > MAX_PICTURE_BYTES) {
      throw new ProtocolError('M_TOO_LARGE', `The picture may have ${MAX_PICTURE_BYTES / 1024 ** 2} MB.`)
    }
    yield piece
  }
}
