import type { ProtocolError } from '../../../core/errors.ts'
import type { Services } from '../../../domain/services.ts'
import type { RawReply } from '../../../http/endpoint.ts'
import type { EndpointRequest } from '../../../http/request.ts'
import { pageReply } from '../../web/page.ts'
import { shownBytes, shownTime } from '../shown.ts'
import type { Owner } from '../signed-in.ts'
import { visitorForm } from '../visitor.ts'

export const DATA_PAGE = '/_hearth/account/data'

/** Lets a person ask for their archive, shows how far it is, and lets them download it. */
export async function dataPage(
  services: Services,
  reader: Pick<EndpointRequest, 'acceptLanguage'>,
  owner: Owner,
  problem?: ProtocolError,
): Promise<RawReply> {
  const { acceptLanguage } = reader
  const archive = await services.archives.state(owner.session.userNid)
  const action = archive?.isComplete ? 'download' : 'make'
  const values = {
    form: visitorForm(owner, { action }, DATA_PAGE),
    remove: visitorForm(owner, { action: 'remove' }, DATA_PAGE),
    user_id: owner.session.userId,
    none: archive === undefined ? 'yes' : '',
    ready: archive?.isComplete ? 'yes' : '',
    being_made: archive?.isComplete === false ? 'yes' : '',
    late: archive?.isLate ? 'yes' : '',
    ...(archive !== undefined && {
      size: shownBytes(archive.bytes, reader),
      until: shownTime(archive.expiresAt, reader),
      ...(archive.part !== undefined && { [archive.part]: 'yes' }),
    }),
  }
  return pageReply(services, 'account-data.page', values, {
    acceptLanguage,
    problem,
    status: problem?.status,
    isSecret: true,
  })
}
