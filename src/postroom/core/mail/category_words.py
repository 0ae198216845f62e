"""The words that tell the categories of mail, in English, German, French, Spanish, Dutch and Italian.

Searches use them as they are written here; the check of a message ignores case, accents and marks.
"""

from dataclasses import dataclass

STRONG, PLAIN, WEAK = 3, 2, 1


@dataclass(frozen=True, slots=True)
class CategoryWords:
    """The words of one category; each field is text, phrases separated by commas.

    `proof` and `strong` phrases weigh `STRONG`: they hardly stand in anything but mail of the category, and proof
    hardly in advertisements. `plain` words name the matter and weigh `PLAIN`; `weak` ones only fit it. Those that are
    `shared` with other categories count only where no other has better ones, and so do weak ones. A word counts as
    plain by its first six letters (`stems`) or, a long one, by its `endings`: so inflections and compounds are found.
    `senders` are parts of the name or the address of a sender.
    """

    proof: str
    strong: str
    plain: str
    weak: str
    shared: str
    stems: str
    endings: str
    senders: str
    domains: str


FINANCE = CategoryWords(
    proof="""
        amount due, balance due, payment due, minimum payment, amount charged, order total, item subtotal,
        subtotal, grand total, total paid, you paid, payment received, received your payment, payment
        confirmation, payment failed, payment declined, transaction id, transaction number, invoice number,
        order number, order confirmation, thank you for your order, thanks for your order, thank you for your
        purchase, billing date, billing period, next billing, account ending, card ending, has been refunded,
        have refunded, trade confirmation, credited to your account, posted to your account, receipt for, your
        receipt, rechnungsbetrag, gesamtbetrag, rechnungsnummer, bestellnummer, fällig am, zahlungsart,
        zahlungseingang, abgebucht, nachzahlung, vielen dank für ihren einkauf, danke für ihre bestellung,
        montant à payer, montant total, total ttc, mode de paiement, importe total, forma de pago, gracias por
        tu compra, gracias por su compra, se cargará, totaalbedrag, afgeschreven, metodo di pagamento, scade il,
        grazie per il tuo acquisto, invoice date, payment method, order summary, billed to, amount paid, order
        details, payment reference, order was executed, trade was executed, past due
    """,
    strong="""
        you sent a payment, invoice attached, attached invoice, your invoice, receipt from, your order, your
        purchase, your statement, account statement, bank statement, estatement, e-statement, your bill, direct
        debit, standing order, your refund, tax return, tax refund, withholding tax, pay stub, payslip, pay
        slip, net pay, your premium, premium is, policy renews, iban, including vat, your donation, wire
        transfer, self assessment, w-2, 1099, ihre bestellung, deine bestellung, ihre rechnung, deine rechnung,
        ihre zahlung, inkl. MwSt, überweisen, überweise, ihr beitrag, lastschrift, kontoauszug, votre facture,
        votre commande, prélèvement, relevé de compte, avis d'échéance, avis d'imposition, virement, su factura,
        tu factura, el importe, su pedido, tu pedido, recibo de, domiciliación, declaración de la renta,
        extracto de cuenta, je factuur, uw factuur, je bestelling, uw bestelling, te betalen, afschrijving,
        jaaropgave, rekeningafschrift, belastingaangifte, tua bolletta, sua bolletta, la bolletta, tuo ordine,
        suo ordine, importo, ricevuta di, estratto conto, you owe, penalty notice, your plan paid, pay within,
        payable within, zahlbar, overdue invoice, unpaid invoice, tax assessment, notice of assessment,
        steuererklärung, steuerbescheid, kartenzahlung, abschlag, bank transfer, money transfer, sent you money,
        payment request, payment reminder, payment due date, credit note, account balance, available balance,
        low balance, loan statement, annual statement, interest rate changed, interest paid, tax statement, tax
        form, tax invoice, tax receipt, gift aid, premium due, insurance policy, policy documents, certificate
        of insurance, claim number, expense report, reimbursement, order receipt, purchase confirmation,
        purchase receipt, kontostand, überweisung, gutschriftsanzeige, depotauszug, wertpapier,
        wertpapierabrechnung, endbetrag, gesamtsumme, rechnung nr, zahlungsziel, zahlungsaufforderung,
        lohnabrechnung, gehaltsabrechnung, entgeltabrechnung, nebenkostenabrechnung, spendenbescheinigung,
        beitragsrechnung, versicherungsschein, sous-total, montant réglé, bon de commande, accusé de paiement,
        fiche de paie, attestation d'assurance, quittance, justificatif de paiement, crédité, débité, importe,
        vencimiento, cargo en cuenta, transferencia, comprobante, justificante de pago, póliza,
        orderbevestiging, betalingsherinnering, aankoop, btw, machtiging, ricevuta, conferma d'ordine, addebito,
        accredito, scadenza, polizza, cedolino, electric bill, gas bill, phone bill, utility bill, energy bill,
        monthly statement, statement is ready, property tax, income tax, tax documents, tax bill, wire
        instructions, wiring instructions, draw request, bank account, capital call, cost basis, brokerage
        account, closing costs, escrow, payable to, payment is due, k-1, life insurance, car insurance, home
        insurance, premium notice, your loan, your mortgage, mortgage payment, loan payment, monthly payment,
        credit card bill, checking account, savings account, steuerunterlagen, kontobewegung, monatsmiete,
        transaktion, borrower, disbursement, gain-loss report, your payment of, your taxes, expense reports, pay
        by credit card, a check for, check in the amount, annual dues, membership dues, deferred compensation,
        your beneficiary, invoice is attached, attached is the invoice, payment instructions
    """,
    plain="""
        receipt, receipts, refund, refunded, charged, payment, mortgage, quittung, zahlung, paiement, recibo,
        pago, betaling, pagamento, invoices, invoiced, refunds, billing, insurance, loan, overdue, direct
        deposit, withdrawal, subscription renewed, order confirmed, order received, order placed, donation, vat,
        you sent, money request, bank details, account number, rechnungen, zahlungen, beleg, steuer, steuern,
        finanzamt, bestellung, bestellbestätigung, auftragsbestätigung, mahnung, gutschrift, rückerstattung,
        erstattung, gehalt, lohn, versicherung, beitrag, miete, nebenkosten, konto, spende, abrechnung,
        factures, reçu de paiement, remboursement, commande, impôts, impôt, salaire, bulletin de paie, loyer,
        assurance, relevé, échéance, cotisation, facturas, pagos, reembolso, pedido, compra, nómina, impuestos,
        hacienda, seguro, alquiler, hipoteca, extracto, bestelling, rekening, betaald, terugbetaling, belasting,
        salaris, loonstrook, verzekering, huur, hypotheek, incasso, fatture, pagamenti, rimborso, ordine,
        bolletta, stipendio, busta paga, tasse, assicurazione, affitto, bonifico, mutuo, owe, autopay,
        steuerberater, dauerauftrag, jaarnota, cashback, statement of account, membership fee, achat, achats,
        acquisto, cuota, tva, mwst, zinsen, kaution, honorar, invoice no, due date, total amount, payout, final
        reminder, invoice, rechnung, facture, factura, fattura, factuur, 401k, 401 k
    """,
    weak="""
        order, orders, total, amount, price, account, bank, card, credit, debit, charge, due, subscription,
        membership, cost, costs, usd, eur, kreditkarte, summe, kosten, preis, abo, montant, prix, compte, carte
        bancaire, precio, cuenta, tarjeta, bedrag, prijs, totale, prezzo, conto, carta, shares, portfolio,
        securities, quarterly, interest, balance, transfer, premium, policy, pension, outstanding, coverage,
        contribution, fee, fees, charges, transaction, transactions, purchase, deposit, renewal, dividend, bill,
        bills, statement, tax, taxes, payroll, paid, expenses, installment, instalment, salary, rent, payments
    """,
    shared="""
        your order, order, orders, order confirmed, order received, order placed, ihre bestellung, deine
        bestellung, bestellung, commande, votre commande, pedido, su pedido, tu pedido, bestelling, je
        bestelling, uw bestelling, ordine, tuo ordine, suo ordine, insurance, policy, payment, payments, paid,
        total, amount, account, pension, transfer, fee, fees, balance, interest
    """,
    stems="""
        invoic, paymen, rechnu, abrech, zahlun, bezahl, uberwe, factur, fattur, factuu, betali, rekeni, kontoa,
        steuer, finanz, belast, versic, insura, assura, assicu, verzek, seguro, mortga, hypoth, kredit, gehalt,
        lohnst, lohnab, payrol, paysli, spende, donati, refund, reimbu, ruckza, erstat, mahnun, quittu, bollet,
        bonifi, pagame, recibo, impues, prelev, nachza, abbuch, lastsc, beitra, bestel, jaarno, jaarop, incass,
        overdr
    """,
    endings="""
        rechnung, abrechnung, versicherung, steuerbescheid, auszug, zahlung, bestellung, überweisung,
        gutschrift, erstattung, factuur, verzekering, betaling, bestelling, belasting, zahlungserinnerung,
        bestellbestätigung
    """,
    senders="""
        billing, invoice, receipt, payment, payroll, rechnung, buchhaltung, mahnwesen, factur, bank, sparkasse,
        insur, versicher, assur, seguros, verzeker, assicura, mortgage, credit, kredit, steuer, finanzamt,
        taxoffice, tax office, lohn, gehalt, invest, broker, energie, stadtwerke, orders@, bestell, commande,
        pedidos, ordini, accounting, revenue, contab, boekhouding, energybill, trading, payit, payable, billpay
    """,
    domains="""
        paypal.com, stripe.com, wise.com, intuit.com, americanexpress.com, klarna.com, revolut.com, n26.com,
        squareup.com, venmo.com, adyen.com, mollie.com, gocardless.com, xero.com, quickbooks.com, datev.de,
        ing.com, chase.com, bankofamerica.com, wellsfargo.com, citi.com, barclays.co.uk, hsbc.com, elster.de
    """,
)

HEALTH = CategoryWords(
    proof="""
        your appointment with dr, appointment with dr, prescription is ready, explanation of benefits, patient
        record, versichertenkarte, liebe patientin, lieber patient, liebe patientinnen, sehr geehrte patientin,
        ihr befund, carte vitale, votre ordonnance, estimada paciente, estimado paciente, su receta, tu receta,
        uw recept, je recept, tessera sanitaria, impegnativa, rx, your appointment is, your appointment on,
        appointment reminder, appointment confirmation, appointment confirmed, your results are, new test
        result, terminbestätigung, terminerinnerung, afspraakbevestiging, conferma appuntamento, confirmation de
        rendez-vous, rappel de rendez-vous
    """,
    strong="""
        doctor's appointment, dental appointment, medical appointment, lab results, test result, test results,
        blood test, blood work, your prescription, your medication, your medicine, medicines, patient portal,
        care team, vaccination, vaccine, immunisation, immunization, health insurance, eye test, eye exam, sight
        test, medical record, your doctor, your dentist, your clinic, outpatient, referral letter, health plan,
        copay, physiotherapy, sick note, medical certificate, arzttermin, gesundheitskarte, laborwerte,
        laborergebnisse, blutwerte, krankmeldung, ihr rezept, e-rezept, krankenkasse, krankenversicherung,
        überweisung vom arzt, prophylaxe, vorsorge, impfung, impftermin, sprechstunde, krankengymnastik,
        arbeitsunfähigkeit, rendez-vous médical, résultats d'analyses, résultats de laboratoire, analyses
        médicales, médecin, mutuelle santé, assurance maladie, vaccin, cita médica, cita con el médico, cita con
        la dra, cita con el dr, resultados de análisis, analítica, tarjeta sanitaria, seguro médico, vacunación,
        vacuna, huisarts, tandarts, afspraak bij de, medicijn, medicijnen, zorgverzekering, vaccinatie,
        bloedonderzoek, uitslag onderzoek, patiëntenportaal, visita médica, visita specialistica, ricetta
        médica, referto, referti, esami del sangue, vaccinazione, il suo médico, visit with dr, your visit with,
        dental visit, eye examination, pharmacist, flu jab, flu shot, day surgery, dermatologist, cardiologist,
        gynaecologist, gynecologist, pediatrician, paediatrician, psychiatrist, orthodontist, radiologist,
        physical therapy, blood pressure, your scan, your x-ray, testergebnis, einweisung, aufnahmetermin,
        medikamentenplan, facharzt, hausarzt, augenarzt, frauenarzt, hautarzt, kinderarzt, nüchtern, dr med,
        dentiste, gynécologue, prescription, ordonnance, farmacia, ricetta, dentista, apotheke, patientenportal,
        your therapist, your mri, impfpass, arztbericht, arztbrief, schmerztabletten, antibiotics, antibiotika,
        get well soon, gute besserung, zahnreinigung, zahnarzttermin, terminverschiebung, détartrage, espace
        patient, examen médical, visita oculistica, visita dal medico, cita previa, control médico, afspraak is
        verplaatst, behandelplan, member id card, medical history, insurance card, discharge summary, follow-up
        appointment, follow up visit, lab report, biopsy, chemotherapy, chemo, ct scan, heart attack, diagnosed
        with, surgery went, knee surgery, heart surgery, my doctor, her doctor, his doctor, krankgeschrieben,
        beim arzt, vom arzt, blutuntersuchung, grippeimpfung, sehtest, physician's office, annual physical,
        executive physical, flu shots, health screening, medical tests, doctor appointment, intensive care,
        doctor's office
    """,
    plain="""
        doctor, dentist, dental, appointment, clinic, pharmacy, check-up, checkup, arzt, zahnarzt, praxis,
        klinik, médico, clínica, rendez-vous, afspraak, appuntamento, appointments, doctors, physician, surgeon,
        hospital, surgery, patient, medical, medication, prescriptions, diagnosis, therapy, therapist,
        vaccinated, mri, x-ray, ultrasound, scan results, cholesterol, optician, physio, cardiology,
        dermatology, radiology, oncology, paediatric, pediatric, health record, medicare, medicaid, nhs, ärztin,
        zahnärztin, krankenhaus, untersuchung, befund, rezept, medikament, medikamente, tabletten, therapie,
        patientin, reha, physiotherapie, mrt, röntgen, impfen, clinique, hôpital, pharmacie, cabinet médical,
        médicament, médicaments, kiné, radiologie, médica, receta, medicamento, paciente, consulta médica,
        radiografía, doctora, ziekenhuis, kliniek, apotheek, recept, fysiotherapie, dottore, dottoressa,
        ospedale, farmaco, farmaci, ambulatorio, paziente, fisioterapia, nurse practitioner, injection, allergy,
        asthma, hearing aid, midwife, hebamme, testergebnisse, fever, fieber, infection, rehabilitation,
        ultraschall, pacemaker, contact lenses, zahn, zähne, tratamiento, dolore, symptoms, refill, your
        session, your chart, health check, your procedure, hospitals, hospitalized, hospitalised, patients,
        patienten, diagnose, diagnosed, pharmacies, prescribed, symptom, pharmazie, out of the hospital, in the
        hospital
    """,
    weak="""
        health, nurse, pain, healthcare, wellness, claim, results, result, test, records, reminder, termin,
        kontrolle, gesundheit, santé, rdv, cita, citas, salud, gezondheid, salute, promemoria, dr, operation,
        your provider, treatment, visit, session, dose, specialist, tablet, tablets, glasses, lenses, ergebnis,
        resultado, resultados, uitslag, analyses, analisi, análisis, onderzoek, behandeling, examination, kur,
        consultation, revisión, eingriff, verordnung
    """,
    shared="""
        appointment, appointments, termin, visit, results, result, reminder, rendez-vous, cita, afspraak,
        appuntamento, examination, session, operation
    """,
    stems="""
        medica, medike, medizi, medeci, medisc, dermat, cardio, kardio, radiol, orthop, ortope, gynaek, gyneco,
        gineco, urolog, neurol, oncolo, onkolo, ophtha, oculis, augena, apothe, farmac, dental, dentis, zahnar,
        zahnme, tandar, vaccin, impfun, impfte, vacuna, pazien, pacien, arztte, arztpr, fachar, hausar, huisar,
        klinik, clinic, cliniq, hopita, ospeda, zieken, kranke, surger, surgeo, chirur, therap, physio, fysiot,
        fisiot, laborw, laborb, blutwe, blutab, ordonn, gesund, sanita, refert, optici, optome, pediat, paedia,
        psychi, anaest, anesth, rontge, arztli, mammog, ultras, schmer
    """,
    endings="""
        klinik, praxis, arzt, ärztin, apotheke, impfung, untersuchung, krankenkasse, krankenversicherung,
        medikament, therapie, sprechstunde, ziekenhuis, zorgverzekering, ergebnisse, termin, tabletten
    """,
    senders="""
        clinic, hospital, medic, medec, doctor, dental, dentist, zahn, arzt, praxis, klinik, krankenhaus,
        pharma, chemist, apothe, patient, health, physio, fysio, radiolog, krankenk, krankenv, optician, optik,
        vaccin, impf, surgery, laborat, labline, huisarts, tandarts, ziekenhuis, apotheek, ospedale, farmacia,
        hôpital, santé, dentaire, salud, mychart, nhs, immunis, immuniz, gesundheit
    """,
    domains="""
        mychart.com, mychart.org, zocdoc.com, doctolib.de, doctolib.fr, doctolib.it, jameda.de, nhs.net, nhs.uk,
        quest.com, labcorp.com, onemedical.com, kp.org, cvs.com, walgreens.com, docmorris.de
    """,
)

TRAVEL = CategoryWords(
    proof="""
        boarding pass, boarding passes, booking reference, booking number, reservation number, reservation
        confirmation, record locator, flight confirmation, stay is confirmed, passenger, passengers, seat
        number, buchungsbestätigung, buchungsnummer, buchungscode, bordkarte, reservierungsbestätigung,
        sitzplatz, auftragsnummer, carte d'embarquement, référence de réservation, référence du dossier,
        confirmation de réservation, numéro de dossier, tarjeta de embarque, localizador, confirmación de
        reserva, número de reserva, código de reserva, instapkaart, boekingscode, boekingsnummer,
        reserveringsnummer, boekingsbevestiging, carta d'imbarco, codice prenotazione, conferma prenotazione,
        itinerary number, trip number, flight number, e-ticket number, ticket number, check-in is now open
    """,
    strong="""
        e-ticket, e-tickets, eticket, your flight, flight details, your itinerary, itinerary, online check-in,
        time to check in, your trip to, your stay, car rental, rental car, pick up location, train ticket, train
        tickets, hotel reservation, hotel booking, travel authorisation, travel authorization, flight cancelled,
        flight delayed, your hotel, your upcoming trip, your upcoming stay, upcoming flight, free cancellation,
        ihre buchung, deine buchung, ihre reise, deine reise, ihr flug, dein flug, ihre reservierung, ihr zug,
        ihr ticket, online-ticket, handyticket, fahrkarte, flugticket, mietwagen, ihr aufenthalt, ihren
        aufenthalt, ihre unterkunft, hinfahrt, übernachtungen, reiseplan, votre réservation, votre vol, votre
        voyage, votre séjour, votre billet, billet électronique, e billet, su reserva, tu reserva, su vuelo, tu
        vuelo, billete electrónico, tu viaje, su viaje, je boeking, uw boeking, je vlucht, uw vlucht, je reis,
        uw reis, reisgegevens, inchecken, in te checken, tua prenotazione, sua prenotazione, tuo volo, suo volo,
        tuo biglietto, suo biglietto, biglietto elettronico, il tuo viaggio, carrozza, boarding card, car hire,
        hire car, zimmerreservierung, hinflug, rückflug, heenvlucht, e-billet, check-in aperto, check-in open,
        checked bag, cabin bag, carry-on, flight to, flight reminder, flight status, trip reminder, travel
        documents, travel itinerary, trip confirmation, travel plans, your ride to the airport, flights to, flug
        nach, zug nach, reise nach, vol pour, vol vers, vuelo a, vlucht naar, volo per, treno per, trein naar,
        billet pour, ticket nach, fahrgastrechte, arrival date, departure date, check-in time, check-out time,
        trip to, flying to, fly to, fly into, flying into, flight from, hotel room, hotel rooms, travel
        arrangements, hotel reservations, place to stay, your train, to the airport, at the airport, plane
        lands, flight lands, boarding time, flights for, your travel, flights are booked, booked the flight,
        trains to, e-visa, evisa, visa application, your visa, tourist visa, my flight, my train, booked a room,
        booked a hotel, booked the hotel, booked our flights, will arrive in, arriving in, will be staying,
        staying at the, staying with us, pick you up at, flight arrangements, hotel arrangements, ground
        transportation, flight schedule, return flight, will be flying, flying in, fly back, arrival time,
        departure time, hotel confirmation, room reservation, flight confirmation number
    """,
    plain="""
        flight, flights, hotel, boarding, reservation, booking, airport, flug, zug, buchung, reservierung,
        billet, vuelo, reserva, vlucht, boeking, volo, prenotazione, biglietto, airline, airlines, hotels,
        reservations, trip, check in, departs, rail, railway, ferry, cruise, airways, hostel, airbnb,
        accommodation, layover, luggage, baggage, voyage, flüge, flughafen, reise, bahn, abflug, ankunft,
        abreise, unterkunft, ferienwohnung, ferienhaus, fähre, bahnhof, gepäck, reiseunterlagen, billets,
        séjour, aéroport, embarquement, gare, bagages, nuits, chambre double, vuelos, viaje, billete, billetes,
        aeropuerto, embarque, equipaje, alojamiento, noches, tren, habitación, vluchten, reis, reservering,
        trein, treinticket, luchthaven, vertrek, overnachting, overnachtingen, bagage, verblijf, voli, viaggio,
        biglietti, treno, aeroporto, albergo, soggiorno, imbarco, partenza, notti, bagaglio, booking confirmed,
        booking confirmation, your booking, check in online, your reservation, reservation confirmed,
        handgepäck, zimmer, doppelzimmer, nächte, équipage, stopover, tour operator, enregistrement, reserviert,
        réservé, reservado, gereserveerd, prenotato, itineraries, shuttle, abfahrt, ausflug, rundreise,
        fluggesellschaft, reisebüro, gîte, chambre, habitación doble, camera doppia, guesthouse, b&b, round
        trip, partida, llegada, aterrizaje, aankomst, arrivo, your journey, airfare, plane, trains, on vacation
    """,
    weak="""
        ticket, tickets, seat, gate, arrival, arrive, stay, night, nights, room, journey, passport, guest,
        guests, host, double room, breakfast, delayed, wagen, frühstück, verspätung, voiture, depart, arrivée,
        petit déjeuner, entrada, salida, asiento, stoel, terminal, train, platform, rental, plaza, villa, kamer,
        coche, vol, vols, apartment, appartement, apartamento, checkout, visa, travel, traveller, traveler,
        departure, arrivals, your host, camping, trips, check-out
    """,
    shared="""
        booking, your booking, booking confirmed, booking confirmation, booking reference, booking number,
        reservation, reservations, your reservation, reservation confirmed, reservation number, reservation
        confirmation, buchung, ihre buchung, deine buchung, buchungsbestätigung, buchungsnummer, buchungscode,
        votre réservation, reserva, su reserva, tu reserva, confirmación de reserva, número de reserva, boeking,
        je boeking, uw boeking, boekingsnummer, boekingscode, prenotazione, tua prenotazione, conferma
        prenotazione, codice prenotazione, ticket, tickets, check in, seat, room
    """,
    stems="""
        flight, flugha, flugli, flugno, abflug, hinflu, ruckfl, reisep, reiseu, reised, reisei, buchun, gebuch,
        umbuch, boekin, geboek, prenot, biglie, billet, bordka, boardi, itiner, airlin, airpor, aeropu, aeropo,
        luchth, vlucht, heenvl, voyage, viaggi, viajes, bahnti, bahnfa, zugver, zugtic, fahrka, fahrpl, mietwa,
        unterk, uberna, overna, alojam, gepack, handge, bagage, baggag, luggag, passen, embarq, imbarc, carroz,
        zimmer, ferien
    """,
    endings="""
        flug, reise, buchung, reservierung, fahrkarte, ticket, vlucht, boeking, hotel, unterkunft
    """,
    senders="""
        airline, airways, flight, flug, vluchten, volo, hotel, hostel, hostal, hotels, reserv, booking@,
        bookings@, buchung, prenotazioni, biglietti, billets, travel, trips@, voyage, viaj, reise, rail, bahn,
        treni, ferry, ferries, cruise, rental, checkin, check-in, airport, ferien, itinerar
    """,
    domains="""
        booking.com, airbnb.com, expedia.com, hotels.com, tripit.com, bahn.de, lufthansa.com, ryanair.com,
        easyjet.com, klm.com, airfrance.fr, united.com, delta.com, aa.com, southwest.com, britishairways.com,
        sncf.com, sncf-connect.com, trainline.com, ns.nl, trenitalia.it, renfe.com, oebb.at, sbb.ch,
        eurostar.com, hertz.com, sixt.com, avis.com, marriott.com, hilton.com, ihg.com, accor.com, flixbus.com,
        agoda.com, trip.com
    """,
)

CONFIRMATION = """
    confirmation number, confirmation code, confirmation, reference number, order number, booking number,
    booking reference, reservation number, itinerary number, trip number, ticket number, booking confirmed,
    booking confirmation, reservation confirmed, reservation confirmation, is confirmed, has been confirmed, is
    booked, auftragsnummer, buchungsnummer, bestellnummer, bestätigt, kundennummer, vorgangsnummer, numéro de
    commande, numéro de réservation, est confirmée, est confirmé, número de pedido, número de reserva,
    confirmado, confirmada, ordernummer, bestelnummer, boekingsnummer, bevestigd, numero ordine, confermato,
    confermata
"""

PROMOTION = """
    off, sale, deal, deals, save, savings, offer, offers, discount, discounts, coupon, voucher code, promo, free
    trial, last chance, limited time, shop now, book now, book today, buy now, up to, apply now, apply in
    minutes, sign up, learn more, exclusive, giveaway, win, bargain, cheap, lowest, rates, rate quote, quote,
    click here, webinar, earn, subscribe, tips, guide, best, weekly, this week, sparen, rabatt, angebot,
    angebote, gutschein, schnäppchen, jetzt kaufen, jetzt buchen, frühbucher, nur heute, gewinnspiel, günstig,
    aktion, tipps, soldes, réduction, offre, offres, profitez, économisez, petit prix, réservez, bon plan, bons
    plans, jusqu'à, oferta, ofertas, descuento, descuentos, rebajas, ahorra, aprovecha, reserva ahora, korting,
    aanbieding, aanbiedingen, voordeel, bespaar, saldi, sconto, sconti, offerta, offerte, approfitta, risparmia,
    fino al
"""

# Phrases of unsolicited offers.
PITCH = """
    our company, our clients, our customers, our products, our services, our solution, our solutions, our
    software, our firm, our technology, our product, our website, our web site, we provide, we offer, we help,
    we specialize, we specialise, leading provider, market leader, cost effective, fortune 500, fortune 1000,
    free demo, white paper, i am the founder, co-founder, my name is, for more information, visit our, visit us,
    no obligation, quick call, schedule a demo, schedule a call, return on investment, bottom line, outsourcing,
    case study, case studies, increase revenue, reduce costs, software that, companies like, help companies,
    helps companies, webcast, webinar, online seminar, register now, register today, business opportunity,
    investment opportunity, executive brief, executive search, predictive dialer, sponsorship, unser
    unternehmen, unsere kunden, unsere lösung, unsere lösungen, wir bieten, kostenlose demo, marktführer,
    unverbindlich, notre société, nos clients, nos solutions, nous proposons, nuestra empresa, nuestros
    clientes, nuestras soluciones, ofrecemos, ons bedrijf, onze klanten, wij bieden, la nostra azienda, i nostri
    clienti, offriamo
"""

UNSUBSCRIBE = """
    you are subscribed, you're subscribed, you are receiving this, you received this because, unsubscribe,
    mailman, listinfo, yahoogroups, opt out, manage preferences, email preferences, mailing list, view in
    browser, view this email, read in browser, notification settings, remove me, removed from this list, removed
    from our list, subscription information, abmelden, abbestellen, newsletter abmelden, abbestellung, se
    désinscrire, désinscription, se désabonner, désabonnement, darse de baja, cancelar suscripción, anular
    suscripción, uitschrijven, afmelden, disiscriviti, annulla iscrizione, cancella iscrizione, disiscrizione,
    this newsletter, as a subscriber, for immediate release, in this issue, this week's issue, this email was
    sent to, this e-mail was sent to, to be removed, list removal
"""

# Mailboxes of programs and of firms, not of people; headers of sending services, and of mailing lists.
PROGRAMS = """
    noreply, donotreply, nobody, noresponder, nepasrepondre, keineantwort, daemon, mailer, postmaster, bounce,
    bounces, notification, notifications, notify, newsletter, newsletters, news, alert, alerts, update, updates,
    automated, autoconfirm, confirm, confirmation, digest, robot, bot, root, system, cron, webmaster, listserv,
    majordomo, mailman, ecartis, reminder, reminders, info, service, services, support, help, helpdesk, hello,
    hi, contact, contacts, kontakt, contacto, contatti, team, office, admin, administrator, orders, order,
    billing, invoice, invoices, receipts, payments, payroll, accounts, accounting, sales, shop, store,
    marketing, offers, deals, promo, promotions, mailing, mailings, booking, bookings, reservation,
    reservations, tickets, trips, checkin, appointments, appointment, pharmacy, reception, results, claims,
    policy, members, member, membership, club, customer, customers, customerservice, care, feedback, survey,
    security, verify, account, registration, subscriptions, subscriber, list, lists, feeds, rssfeeds, feed, rss,
    calendar, rechnung, rechnungen, bestellung, bestellungen, buchung, buchhaltung, termine, termin,
    kundenservice, kunden, kundendienst, hinweis, praxis, anmeldung, rezeption, redaktion, angebote, buero,
    buro, sekretariat, zentrale, leistung, facturation, commande, commandes, resultats, offres, billets, rdv,
    facturacion, pedidos, ventas, avisos, citas, reservas, ofertas, bestellingen, klantenservice, administratie,
    afspraken, balie, nieuws, ordini, clienti, fatture, prenotazioni, biglietti, appuntamenti, editor, magazine,
    letter, press, events, webinar, webinars, webcast, champion, abo, post, mail, empfang, all, everyone, staff,
    employees, group, groups, announcement, announcements, report, reports, portal, kundenportal, webshop,
    boutique, tienda, postfach, storage
"""

SENDING_SERVICES = """
    feedback-id, x-ses-outgoing, x-sg-eid, x-mailgun-sid, x-mandrill-user, x-mc-user, x-campaign, x-campaignid,
    x-csa-complaints, x-pm-message-id, x-report-abuse
"""

LIST_HEADERS = """
    list-unsubscribe, list-id, list-post, list-help, mailing-list, x-mailing-list, x-list, x-listserver,
    x-mailman-version
"""
