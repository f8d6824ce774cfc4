import { endpoint } from '../../../http/endpoint.ts'
import { whenSignedIn } from '../signed-in.ts'
import { DATA_PAGE, dataPage } from './data-page.ts'

export const showData = endpoint('GET /_hearth/account/data', { auth: 'none', limited: 'other' }, (request, services) =>
  whenSignedIn(request, services, { proof: 'just now', next: DATA_PAGE }, (owner) =>
    dataPage(services, request, owner),
  ),
)
