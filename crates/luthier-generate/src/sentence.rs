//! Synthetic German–English sentence pairs about travel and town, with gold word links.
//!
//! A sentence is made in three steps. A small tree of clauses and noun phrases is drawn, then it is said once
//! in German and as often as wished in English. Every node of the tree owns a block of marks; each token
//! carries the marks of what it expresses, and two tokens are linked if they share a mark.

use std::sync::LazyLock;

/// A German sentence with English translations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The German tokens.
    pub source: Vec<String>,
    /// The English translations, as tokens.
    pub targets: Vec<Vec<String>>,
    /// For each translation the sorted (source position, target position) links.
    pub links: Vec<Vec<(u32, u32)>>,
}

// ---------------------------------------------------------------------------------------------------------
// Tables
// ---------------------------------------------------------------------------------------------------------

/// A set of meaning classes, one bit each.
type Class = u64;

const PERSON: Class = 1;
const KIN: Class = 1 << 1;
const FOOD: Class = 1 << 2;
const DRINK: Class = 1 << 3;
const VEHICLE: Class = 1 << 4;
const RIDE: Class = 1 << 5;
const PLACE: Class = 1 << 6;
const SIGHT: Class = 1 << 7;
const TICKET: Class = 1 << 8;
const THING: Class = 1 << 9;
const READ: Class = 1 << 10;
const ROOM: Class = 1 << 11;
const EVENT: Class = 1 << 12;
const DOOR: Class = 1 << 13;
const DEVICE: Class = 1 << 14;
const SEAT: Class = 1 << 15;
const ANIMAL: Class = 1 << 16;
const CLOTH: Class = 1 << 17;
const STOP: Class = 1 << 18;
const CORNER: Class = 1 << 19;
const SEND: Class = 1 << 20;
const FLOWER: Class = 1 << 21;
const MONEY: Class = 1 << 22;
const FORM: Class = 1 << 23;
const STREET: Class = 1 << 24;
const NAMED: Class = 1 << 25;
const MAP: Class = 1 << 26;
const WALL: Class = 1 << 27;
const EATERY: Class = 1 << 28;
const LODGE: Class = 1 << 29;
const SHOP: Class = 1 << 30;
const DESK: Class = 1 << 31;
const PRICE: Class = 1 << 32;
const SPAN: Class = 1 << 33;
const SKY: Class = 1 << 34;
const WEATHER: Class = 1 << 35;
const STAFF: Class = 1 << 36;
const WATER: Class = 1 << 37;
const BANK: Class = 1 << 38;
const LUGGAGE: Class = 1 << 39;
const ZOO: Class = 1 << 40;
const BUTTON: Class = 1 << 41;
const MEASURE: Class = 1 << 42;
const AIR: Class = 1 << 43;

/// Things somebody may call their own.
const OWN: Class = KIN | RIDE | TICKET | THING | READ | ROOM | CLOTH | SEND | LUGGAGE | MAP;
/// Things that are measured by a cup or a glass, or not counted at all.
const MASS: Class = FOOD | DRINK | MONEY;

/// Nouns in groups that share a class and a way to say "there" (German preposition, English ones). Each noun
/// has singular, plural ("-" for none), gender (m, f, n; w for n-declension, p for plural only), English
/// singulars, and perhaps a list of compound parts.
#[rustfmt::skip]
const NOUNS: &[(Class, &str, &str, &str)] = &[
    (PERSON | KIN, "", "", "schwester schwestern f sister; bruder brüder m brother; freund freunde m friend;
      freundin freundinnen f friend; mutter - f mother; vater - m father; - eltern p parent;
      tochter töchter f daughter; sohn söhne m son; tante tanten f aunt; onkel onkel m uncle;
      großmutter - f grandmother; kollege kollegen w colleague; großvater - m grandfather;
      nachbarin nachbarinnen f neighbour; kollegin kolleginnen f colleague; nachbar nachbarn w neighbour;
      - großeltern p grandparent; chef chefs m boss; cousine cousinen f cousin; neffe neffen w nephew;
      nichte nichten f niece; enkel enkel m grandson; chefin chefinnen f boss"),
    (PERSON, "", "", "mann männer m man; frau frauen f woman; kind kinder n child; tourist touristen w
      tourist;
      gast gäste m guest <gast; student studenten w student; mädchen mädchen n girl; junge jungen w boy;
      touristin touristinnen f tourist; arzt ärzte m doctor; lehrer lehrer m teacher <lehrer;
      studentin studentinnen f student; kunde kunden w customer; ärztin ärztinnen f doctor;
      polizist polizisten w policeman/police_officer; - leute p person; lehrerin lehrerinnen f teacher;
      künstler künstler m artist; musiker musiker m musician; maler maler m painter; dieb diebe m thief;
      polizistin polizistinnen f police_officer; bürgermeister bürgermeister m mayor; schüler schüler m
      pupil;
      journalist journalisten w journalist; radfahrer radfahrer m cyclist; ingenieur ingenieure m engineer;
      schauspieler schauspieler m actor; sängerin sängerinnen f singer; wanderer wanderer m hiker"),
    (PERSON | STAFF, "", "", "kellner kellner m waiter; fahrer fahrer m driver <fahrer; kellnerin
      kellnerinnen
      f waitress; schaffner schaffner m conductor; verkäufer verkäufer m seller <verkauf; verkäuferin
      verkäuferinnen f saleswoman/shop_assistant; koch köche m cook/chef; reiseleiter reiseleiter m
      tour_guide;
      direktor direktoren m director <direktor; reiseleiterin reiseleiterinnen f tour_guide;
      leiter leiter m manager/head; schaffnerin schaffnerinnen f conductor; bäcker bäcker m baker;
      pilot piloten w pilot; portier portiers m porter; rezeptionistin rezeptionistinnen f receptionist;
      gärtner gärtner m gardener; kapitän kapitäne m captain; zimmermädchen zimmermädchen n chambermaid"),
    (PLACE | SIGHT, "in", "in/at", "museum museen n museum <museum; kirche kirchen f church <kirche;
      schloss schlösser n castle; zoo zoos m zoo; rathaus rathäuser n town_hall/city_hall;
      dom dome m cathedral; altstadt altstädte f old_town; park parks m park <park; theater theater n
      theatre;
      garten gärten m garden <garten; galerie galerien f gallery; kloster klöster n monastery;
      opernhaus opernhäuser n opera_house; kapelle kapellen f chapel; synagoge synagogen f synagogue"),
    (PLACE | LODGE, "in", "in/at", "hotel hotels n hotel <hotel; pension pensionen f guest_house;
      jugendherberge jugendherbergen f youth_hostel; ferienwohnung ferienwohnungen f holiday_flat;
      ferienhaus ferienhäuser n holiday_home"),
    (PLACE | EATERY, "in", "in/at", "restaurant restaurants n restaurant <lokal; café cafés n café <cafe;
      gasthaus gasthäuser n inn; kneipe kneipen f pub; speisesaal speisesäle m dining_room;
      eisdiele eisdielen f ice_cream_parlour; biergarten biergärten m beer_garden; konditorei konditoreien
      f pastry_shop; bar bars f bar"),
    (PLACE | SHOP, "in", "in/at", "supermarkt supermärkte m supermarket; laden läden m shop/store <laden;
      bäckerei bäckereien f bakery; kaufhaus kaufhäuser n department_store; geschäft geschäfte n shop/store
      <laden; buchhandlung buchhandlungen f bookshop/bookstore; apotheke apotheken f pharmacy;
      einkaufszentrum einkaufszentren n shopping_centre/mall; metzgerei metzgereien f butcher_shop"),
    (PLACE | SHOP, "auf", "at", "markt märkte m market <markt"),
    (PLACE, "in", "in/at", "stadt städte f city/town; dorf dörfer n village; bibliothek bibliotheken f
      library;
      kino kinos n cinema/movie_theatre; krankenhaus krankenhäuser n hospital; büro büros n office;
      schule schulen f school <schule; schwimmbad schwimmbäder n swimming_pool; post - f post_office;
      reisebüro reisebüros n travel_agency; universität universitäten f university; botschaft botschaften
      f embassy; wartesaal wartesäle m waiting_room; halle hallen f hall <halle; viertel viertel n district
      <viertel; stadion stadien n stadium; wald wälder m forest/wood; fabrik fabriken f factory <fabrik"),
    (PLACE | BANK, "in", "in/at", "bank banken f bank; sparkasse sparkassen f savings_bank;
      wechselstube wechselstuben f exchange_office"),
    (PLACE, "an", "at", "eingang eingänge m entrance; ausgang ausgänge m exit; gericht gerichte n court;
      brunnen brunnen m fountain; denkmal denkmäler n monument; tor tore n gate <tor; kiosk kioske m
      kiosk"),
    (PLACE | WATER, "an", "by", "fluss flüsse m river; see seen m lake; strand strände m beach;
      kanal kanäle m canal; teich teiche m pond"),
    (PLACE | STOP, "an", "at", "bahnhof bahnhöfe m station/train_station; hauptbahnhof hauptbahnhöfe m
      main_station/central_station; flughafen flughäfen m airport; haltestelle haltestellen f stop <halt;
      hafen häfen m harbour/port; busbahnhof busbahnhöfe m bus_station; endstation endstationen f terminus;
      taxistand taxistände m taxi_rank/taxi_stand; anlegestelle anlegestellen f landing_stage"),
    (PLACE | DESK, "an", "at", "schalter schalter m counter <schalter; kasse kassen f
      ticket_office/cash_desk;
      automat automaten w machine <automat; rezeption rezeptionen f reception"),
    (PLACE | CORNER, "an", "at", "ampel ampeln f traffic_light; kreuzung kreuzungen f crossing/intersection;
      ecke ecken f corner; brücke brücken f bridge <brücke; tankstelle tankstellen f
      petrol_station/gas_station"),
    (PLACE | SIGHT, "auf", "on", "brücke brücken f bridge <brücke; turm türme m tower <turm; berg berge m
      mountain; insel inseln f island; burg burgen f castle/fortress"),
    (PLACE, "auf", "in", "platz plätze m square; marktplatz marktplätze m market_square;
      parkplatz parkplätze m car_park/parking_lot; friedhof friedhöfe m cemetery"),
    (PLACE, "auf", "at/on", "campingplatz campingplätze m campsite; messe messen f trade_fair; bauernhof
      bauernhöfe m farm;
      spielplatz spielplätze m playground; terrasse terrassen f terrace; balkon balkone m balcony"),
    (PLACE | STREET, "in", "in/on", "straße straßen f street <strasse; gasse gassen f lane/alley;
      fußgängerzone fußgängerzonen f pedestrian_zone"),
    (PLACE | NAMED, "in", "in/on", "straße - f street <namen; gasse - f lane <namen; allee - f avenue
      <namen"),
    (PLACE | NAMED, "an", "at/on", "platz - m square <namen"),
    (VEHICLE, "in", "on", "zug züge m train <zug; bus busse m bus <bus; straßenbahn straßenbahnen f
      tram/streetcar; u-bahn u-bahnen f underground/metro; schiff schiffe n ship/boat <schiff; s-bahn
      s-bahnen f suburban_train; fähre fähren f ferry;
      seilbahn seilbahnen f cable_car; dampfer dampfer m steamer"),
    (AIR, "in", "on", "flugzeug flugzeuge n plane/aeroplane"),
    (RIDE | DEVICE, "", "", "auto autos n car; fahrrad fahrräder n bicycle/bike; wagen wagen m car <wagen;
      taxi taxis n taxi/cab; boot boote n boat <boot; motorrad motorräder n motorcycle/motorbike;
      wohnmobil wohnmobile n camper_van; roller roller m scooter"),
    (TICKET, "", "", "karte karten f ticket <karte; fahrkarte fahrkarten f ticket; ticket tickets n ticket;
      fahrschein fahrscheine m ticket; rückfahrkarte rückfahrkarten f return_ticket/round-trip_ticket;
      eintrittskarte eintrittskarten f admission_ticket; platzkarte platzkarten f seat_reservation"),
    (MAP | READ, "", "", "stadtplan stadtpläne m city_map/street_map; karte karten f map <landkarte;
      fahrplan fahrpläne m timetable/schedule <fahrplan; reiseführer reiseführer m guidebook/travel_guide"),
    (READ, "", "", "zeitung zeitungen f newspaper/paper <zeitung; buch bücher n book <buch;
      speisekarte speisekarten f menu; zeitschrift zeitschriften f magazine; roman romane m novel;
      schild schilder n sign <schild; plakat plakate n poster; programm programme n programme <programm"),
    (SEND | READ, "", "", "brief briefe m letter; postkarte postkarten f postcard; karte karten f card
      <grußkarte; nachricht nachrichten f message; rechnung rechnungen f bill; einladung einladungen f
      invitation"),
    (THING | LUGGAGE | DOOR, "", "", "koffer koffer m suitcase <koffer; tasche taschen f bag <tasche;
      rucksack rucksäcke m backpack/rucksack; paket pakete n parcel/package; kiste kisten f box/crate"),
    (THING, "", "", "schlüssel schlüssel m key <schlüssel; pass pässe m passport; handy handys n
      mobile_phone/cell_phone; regenschirm regenschirme m umbrella; kamera kameras f camera;
      geschenk geschenke n present/gift; uhr uhren f watch <armbanduhr; ausweis ausweise m identity_card;
      decke decken f blanket <wolldecke; geldbeutel geldbeutel m wallet/purse; foto fotos n photo/picture;
      schirm schirme m umbrella; andenken andenken n souvenir; handtuch handtücher n towel; kissen kissen n
      pillow; teller teller m plate; messer messer n knife; ball bälle m ball; löffel löffel m spoon;
      stock stöcke m stick; gabel gabeln f fork; kerze kerzen f candle; ring ringe m ring <ring;
      puppe puppen f doll; zahnbürste zahnbürsten f toothbrush; korb körbe m basket; vase vasen f vase;
      leiter leitern f ladder"),
    (FLOWER, "", "", "blume blumen f flower; strauß sträuße m bouquet <blumenstrauß; rose rosen f rose;
      tulpe tulpen f tulip; nelke nelken f carnation"),
    (CLOTH, "", "", "jacke jacken f jacket <jacke; mantel mäntel m coat <mantel; hut hüte m hat <hut;
      hemd hemden n shirt; schuh schuhe m shoe <schuh; kleid kleider n dress <kleid; mütze mützen f cap;
      pullover pullover m sweater/pullover; anzug anzüge m suit; rock röcke m skirt; stiefel stiefel m boot;
      handschuh handschuhe m glove; krawatte krawatten f tie"),
    (FOOD, "", "", "brot - n bread; suppe suppen f soup <suppe; kuchen kuchen m cake <kuchen; käse - m
      cheese;
      salat salate m salad <salat; apfel äpfel m apple; fisch - m fish; brötchen brötchen n roll <brötchen;
      eis - n ice_cream <eis; gericht gerichte n dish <speise; fleisch - n meat; wurst würste f sausage;
      ei eier n egg; kartoffel kartoffeln f potato; birne birnen f pear; obst - n fruit; pizza pizzas f
      pizza;
      schokolade - f chocolate; tomate tomaten f tomato; banane bananen f banana; schinken - m ham;
      pfannkuchen pfannkuchen m pancake; keks kekse m biscuit/cookie; erdbeere erdbeeren f strawberry;
      kirsche kirschen f cherry; honig - m honey; reis - m rice; knödel knödel m dumpling;
      marmelade - f jam; schnitzel schnitzel n schnitzel; brezel brezeln f pretzel"),
    (DRINK, "", "", "kaffee - m coffee; tee - m tea <tee; wasser - n water; bier - n beer; wein - m wine
      <wein;
      saft - m juice <saft; milch - f milk; limonade - f lemonade; kakao - m cocoa/hot_chocolate;
      sekt - m sparkling_wine"),
    (EVENT, "", "", "konzert konzerte n concert <konzert; führung führungen f tour <führung;
      film filme m film/movie; ausstellung ausstellungen f exhibition <ausstellung; fest feste n festival
      <fest; vorstellung vorstellungen f performance/show <vorstellung; rundfahrt rundfahrten f tour
      <rundfahrt;
      ausflug ausflüge m excursion/trip; reise reisen f journey/trip <reise; spiel spiele n game/match;
      fahrt fahrten f journey/ride <fahrt; hochzeit hochzeiten f wedding; messe messen f mass <messe;
      vortrag vorträge m lecture/talk; umzug umzüge m parade; theaterstück theaterstücke n play"),
    (ROOM, "in", "in", "zimmer zimmer n room <zimmer; wohnung wohnungen f flat/apartment; küche küchen f
      kitchen <küche; bad bäder n bathroom; abteil abteile n compartment <abteil; saal säle m hall;
      flügel flügel m wing; keller keller m cellar/basement; schlafzimmer schlafzimmer n bedroom"),
    (DOOR | WALL, "", "", "tür türen f door <tür; fenster fenster n window <fenster; tor tore n gate <tor;
      schrank schränke m cupboard/wardrobe; schublade schubladen f drawer; schließfach schließfächer n
      locker"),
    (DEVICE, "", "", "lampe lampen f lamp <lampe; heizung heizungen f heater/heating_system; dusche
      duschen f
      shower; schloss schlösser n lock <türschloss; fernseher fernseher m television/tv_set; uhr uhren f
      clock
      <turmuhr; automat automaten w machine <automat; aufzug aufzüge m lift/elevator; klimaanlage
      klimaanlagen f air_conditioner; birne birnen f light_bulb/bulb;
      rolltreppe rolltreppen f escalator; hahn hähne m tap/faucet <hahn;
      kühlschrank kühlschränke m fridge/refrigerator; telefon telefone n telephone; bremse bremsen f
      brake"),
    (DEVICE | BUTTON, "", "", "schalter schalter m switch <lichtschalter; klingel klingeln f bell <klingel;
      knopf knöpfe m button <knopf"),
    (MEASURE, "", "", "glas gläser n glass; tasse tassen f cup; flasche flaschen f bottle; stück stück n
      piece"),
    (WALL, "", "", "wand wände f wall; decke decken f ceiling <zimmerdecke; zaun zäune m fence; mauer
      mauern f
      wall <mauer; bank bänke f bench <gartenbank"),
    (SEAT, "auf", "on", "bank bänke f bench <gartenbank; stuhl stühle m chair; sofa sofas n sofa; wiese
      wiesen f
      meadow; mauer mauern f wall; treppe treppen f staircase; decke decken f blanket"),
    (ANIMAL, "", "", "hund hunde m dog; katze katzen f cat; vogel vögel m bird; pferd pferde n horse; ente
      enten f
      duck; esel esel m donkey; hahn hähne m rooster; schwan schwäne m swan; ziege ziegen f goat"),
    (ANIMAL | ZOO, "", "", "affe affen w monkey; elefant elefanten w elephant; bär bären w bear <bär;
      löwe löwen w lion; strauß strauße m ostrich; pinguin pinguine m penguin; giraffe giraffen f giraffe;
      papagei papageien w parrot"),
    (MONEY, "", "", "geld - n money; münze münzen f coin <münze; schein scheine m banknote/note"),
    (FORM, "", "", "formular formulare n form <formular; vertrag verträge m contract <vertrag; antrag
      anträge m
      application"),
    (PRICE, "", "", "euro euro m euro; euro euro m euro; franken franken m franc; cent cent m cent"),
    (SPAN, "", "", "stunde stunden f hour; minute minuten f minute; tag tage m day; woche wochen f week"),
    (SKY, "", "", "sonne - f sun"),
];

/// Compound parts by list name, as German first part and English words.
#[rustfmt::skip]
const PARTS: &[(&str, &str)] = &[
    ("abteil", "schlaf:sleeping nichtraucher:non-smoking familien:family"),
    ("armbanduhr", "taschen:pocket gold:gold"),
    ("ausstellung", "kunst:art foto:photo sonder:special blumen:flower möbel:furniture"),
    ("automat", "fahrkarten:ticket getränke:drinks geld:cash kaffee:coffee parkschein:parking_ticket"),
    ("blumenstrauß", "blumen:flower rosen:rose hochzeits:wedding"),
    ("boot", "segel:sailing ruder:rowing motor:motor fischer:fishing haus:house"),
    ("brötchen", "käse:cheese schinken:ham wurst:sausage fisch:fish eier:egg"),
    ("brücke", "eisenbahn:railway fußgänger:pedestrian stein:stone holz:wooden autobahn:motorway
      hänge:suspension"),
    ("buch", "kinder:children's bilder:picture koch:cook schul:school geschichts:history"),
    ("bus", "nacht:night stadt:city flughafen:airport reise:tour schul:school hotel:hotel"),
    ("bär", "eis:polar braun:brown"),
    ("cafe", "museums:museum strand:beach park:park garten:garden internet:internet schloss:castle
      theater:theatre"),
    ("eis", "vanille:vanilla schokoladen:chocolate erdbeer:strawberry zitronen:lemon nuss:nut"),
    ("fabrik", "schokoladen:chocolate schuh:shoe papier:paper möbel:furniture"),
    ("fahrer", "bus:bus taxi:taxi straßenbahn:tram lastwagen:truck"),
    ("fahrplan", "bus:bus sommer:summer winter:winter"),
    ("fahrt", "bus:bus zug:train boots:boat taxi:taxi heim:home schiffs:boat"),
    ("fenster", "küchen:kitchen hotel:hotel kirchen:church keller:cellar dach:roof laden:shop"),
    ("fest", "wein:wine sommer:summer stadt:city dorf:village musik:music hafen:harbour straßen:street"),
    ("formular", "anmelde:registration bestell:order visum:visa"),
    ("führung", "stadt:city museums:museum schloss:castle nacht:night hafen:harbour kloster:monastery"),
    ("garten", "schloss:castle rosen:rose hotel:hotel kräuter:herb kloster:monastery"),
    ("gartenbank", "garten:garden park:park holz:wooden stein:stone"),
    ("gast", "hotel:hotel hochzeits:wedding ehren:honorary"),
    ("grußkarte", "geburtstags:birthday weihnachts:christmas glückwunsch:greeting"),
    ("hahn", "wasser:water gas:gas"),
    ("halle", "bahnhofs:station markt:market messe:exhibition sport:sports flughafen:airport"),
    ("halt", "bus:bus straßenbahn:tram"),
    ("hotel", "stadt:city flughafen:airport luxus:luxury bahnhofs:station strand:beach familien:family
      schloss:castle"),
    ("hut", "sonnen:sun stroh:straw filz:felt"),
    ("jacke", "leder:leather regen:rain winter:winter woll:wool ski:ski"),
    ("karte", "theater:theatre kino:cinema konzert:concert museums:museum tages:day zoo:zoo wochen:week
      opern:opera"),
    ("kirche", "dorf:village stadt:city kloster:monastery holz:wooden"),
    ("kleid", "sommer:summer hochzeits:wedding abend:evening seiden:silk"),
    ("klingel", "tür:door fahrrad:bicycle"),
    ("knopf", "alarm:alarm halte:stop start:start"),
    ("koffer", "leder:leather reise:travel"),
    ("konzert", "klavier:piano rock:rock sommer:summer kirchen:church orgel:organ jazz:jazz"),
    ("kuchen", "apfel:apple käse:cheese kirsch:cherry schokoladen:chocolate pflaumen:plum nuss:nut
      zitronen:lemon"),
    ("küche", "hotel:hotel schul:school restaurant:restaurant"),
    ("laden", "andenken:souvenir schuh:shoe blumen:flower spielzeug:toy käse:cheese fahrrad:bicycle
      musik:music hut:hat"),
    ("lampe", "schreibtisch:desk küchen:kitchen nachttisch:bedside straßen:street"),
    ("landkarte", "wander:hiking straßen:road land:country fahrrad:cycling"),
    ("lehrer", "deutsch:german musik:music ski:ski tanz:dance englisch:english sport:sports"),
    ("lichtschalter", "licht:light"),
    ("lokal", "fisch:fish hotel:hotel hafen:harbour bahnhofs:station garten:garden strand:beach"),
    ("mantel", "winter:winter regen:rain leder:leather sommer:summer"),
    ("markt", "wochen:weekly weihnachts:christmas floh:flea fisch:fish blumen:flower bauern:farmers'
      gemüse:vegetable"),
    ("mauer", "stadt:city garten:garden stein:stone hafen:harbour"),
    ("messe", "oster:easter sonntags:sunday weihnachts:christmas"),
    ("museum", "stadt:city kunst:art eisenbahn:railway spielzeug:toy schokoladen:chocolate uhren:clock
      puppen:doll
      fahrrad:bicycle hafen:harbour musik:music schul:school auto:car"),
    ("münze", "gold:gold silber:silver euro:euro"),
    ("park", "stadt:city schloss:castle freizeit:amusement kur:spa"),
    ("programm", "theater:theatre konzert:concert kino:cinema"),
    ("reise", "bus:bus hochzeits:wedding geschäfts:business gruppen:group schiffs:boat ferien:holiday"),
    ("ring", "gold:gold silber:silver hochzeits:wedding"),
    ("rundfahrt", "stadt:city hafen:harbour insel:island see:lake"),
    ("saft", "apfel:apple orangen:orange kirsch:cherry tomaten:tomato trauben:grape birnen:pear"),
    ("salat", "kartoffel:potato tomaten:tomato gurken:cucumber obst:fruit nudel:pasta bohnen:bean"),
    ("schalter", "fahrkarten:ticket informations:information gepäck:luggage bank:bank"),
    ("schiff", "kreuzfahrt:cruise segel:sailing ausflugs:excursion fracht:cargo"),
    ("schild", "straßen:street verbots:prohibition orts:town hinweis:information"),
    ("schlüssel", "zimmer:room haus:house auto:car hotelzimmer:hotel_room koffer:suitcase keller:cellar"),
    ("schuh", "wander:hiking turn:gym leder:leather tanz:dancing"),
    ("schule", "sprach:language musik:music tanz:dance koch:cookery ski:ski"),
    ("speise", "fisch:fish fleisch:meat nudel:pasta haupt:main"),
    ("strasse", "haupt:main einkaufs:shopping seiten:side einbahn:one-way"),
    ("suppe", "tomaten:tomato kartoffel:potato zwiebel:onion gemüse:vegetable fisch:fish hühner:chicken
      bohnen:bean
      linsen:lentil pilz:mushroom"),
    ("tasche", "hand:hand reise:travel leder:leather einkaufs:shopping schul:school"),
    ("tee", "kräuter:herbal pfefferminz:peppermint früchte:fruit kamillen:camomile"),
    ("tor", "stadt:city garten:garden schloss:castle hof:courtyard"),
    ("turm", "kirch:church wasser:water rathaus:town_hall fernseh:television aussichts:observation
      schloss:castle"),
    ("turmuhr", "bahnhofs:station turm:tower küchen:kitchen rathaus:town_hall kirchen:church"),
    ("tür", "haus:front zimmer:room hotel:hotel eingangs:entrance glas:glass auto:car keller:cellar
      küchen:kitchen"),
    ("türschloss", "tür:door fahrrad:bicycle koffer:suitcase"),
    ("verkauf", "eis:ice_cream blumen:flower zeitungs:newspaper fahrkarten:ticket obst:fruit"),
    ("vertrag", "miet:rental kauf:purchase arbeits:work"),
    ("viertel", "hafen:harbour bahnhofs:station künstler:artists' theater:theatre"),
    ("vorstellung", "theater:theatre abend:evening film:film zirkus:circus"),
    ("wagen", "miet:rental last:goods liefer:delivery sport:sports"),
    ("wein", "rot:red weiß:white apfel:apple"),
    ("wolldecke", "woll:wool reise:travel bett:bed"),
    ("zeitung", "tages:daily sonntags:sunday abend:evening sport:sports wochen:weekly"),
    ("zimmer", "hotel:hotel doppel:double einzel:single gäste:guest kinder:children's arbeits:work"),
    ("zimmerdecke", "zimmer:room küchen:kitchen kirchen:church"),
    ("zug", "nacht:night regional:regional schnell:express sonder:special güter:goods"),
    ("direktor", "museums:museum hotel:hotel zoo:zoo theater:theatre bank:bank schul:school"),
    ("namen", "schiller:schiller linden:linden goethe:goethe mozart:mozart beethoven:beethoven luther:luther
      kirch:church garten:garden rosen:rose schul:school mühlen:mill kant:kant schubert:schubert königs:king
      brunnen:fountain kastanien:chestnut bismarck:bismarck hegel:hegel humboldt:humboldt berg:hill
      wagner:wagner"),
];

/// Adjectives by the classes they go with: German, English, and both comparatives where there are any.
#[rustfmt::skip]
const ADJECTIVES: &[(Class, &str)] = &[
    (PLACE | THING | CLOTH | RIDE | LUGGAGE | READ | VEHICLE | ROOM | DOOR | DEVICE | WALL | STREET | SEAT,
      "neu new neuer newer; alt old älter older; klein small/little kleiner smaller; groß big/large größer
      bigger/larger; schön beautiful/lovely schöner more_beautiful; modern modern"),
    (PERSON, "jung young jünger younger; alt old älter older; freundlich friendly freundlicher friendlier;
      nett nice/kind netter nicer/kinder; müde tired; berühmt famous berühmter more_famous; klug clever
      klüger
      cleverer; krank ill/sick; höflich polite höflicher more_polite; glücklich happy glücklicher happier;
      neugierig curious; hungrig hungry; nervös nervous; traurig sad; reich rich reicher richer; arm poor;
      ungeduldig impatient; fleißig hard-working; italienisch italian *; französisch french *; japanisch
      japanese *"),
    (LODGE | EATERY | ROOM | SHOP, "teuer expensive teurer more_expensive; billig cheap billiger cheaper;
      gemütlich cosy gemütlicher cosier; sauber clean sauberer cleaner; ruhig quiet ruhiger quieter;
      laut noisy/loud lauter noisier/louder; schmutzig dirty; voll full/crowded; leer empty; dunkel dark;
      hell bright heller brighter; elegant elegant; warm warm wärmer warmer"),
    (EATERY | FOOD, "gut good besser better; italienisch italian *; französisch french *; griechisch greek
      *;
      spanisch spanish *; bayerisch bavarian *; japanisch japanese *; vegetarisch vegetarian ="),
    (FOOD | DRINK, "frisch fresh frischer fresher; lecker delicious/tasty; warm warm wärmer warmer; kalt
      cold
      kälter colder; heiß hot heißer hotter; süß sweet süßer sweeter; salzig salty; billig cheap billiger
      cheaper;
      scharf spicy/hot"),
    (SIGHT | LODGE, "berühmt famous berühmter more_famous; alt old älter older; schön beautiful/lovely
      schöner more_beautiful; historisch historic =; mittelalterlich medieval =; romantisch romantic;
      gotisch gothic =;
      prächtig magnificent =; riesig huge ="),
    (TICKET, "teuer expensive teurer more_expensive; billig cheap billiger cheaper; gültig valid =;
      übertragbar transferable ="),
    (VEHICLE | STOP | CORNER | STREET, "nächst next !; letzt last !; erst first !; zweit second !; dritt
      third !"),
    (VEHICLE, "schnell fast schneller faster; langsam slow langsamer slower; voll full/crowded voller
      fuller;
      bequem comfortable bequemer more_comfortable"),
    (EVENT | READ, "interessant interesting interessanter more_interesting; lang long länger longer; kurz
      short
      kürzer shorter; langweilig boring; spannend exciting spannender more_exciting; lustig funny;
      kostenlos free =; berühmt famous berühmter more_famous"),
    (THING | CLOTH | RIDE | LUGGAGE | FLOWER | DOOR | WALL, "rot red =; blau blue =; schwarz black =; weiß
      white =; grün green =; gelb yellow =; braun brown =; grau grey/gray =; bunt colourful/colorful"),
    (LUGGAGE, "schwer heavy schwerer heavier; leicht light leichter lighter; leer empty"),
    (THING | CLOTH | FLOWER, "teuer expensive teurer more_expensive; billig cheap billiger cheaper;
      praktisch practical; elegant elegant; warm warm wärmer warmer"),
    (DEVICE, "kaputt broken =; laut noisy/loud lauter noisier/louder; defekt defective/broken ="),
    (WALL | DOOR, "hoch high höher higher; weiß white =; breit wide breiter wider; schmal narrow"),
    (STREET | WATER, "breit wide breiter wider; schmal narrow; lang long länger longer; ruhig quiet
      ruhiger quieter"),
    (ANIMAL, "klein small/little kleiner smaller; groß big/large größer bigger/larger; wild wild =; zahm
      tame =;
      schwarz black =; weiß white =; jung young jünger younger; hungrig hungry; faul lazy"),
    (MONEY | FORM | SEND, "lang long länger longer; wichtig important wichtiger more_important; alt old"),
    (WEATHER, "kalt cold kälter colder; warm warm wärmer warmer; heiß hot heißer hotter; windig windy;
      neblig foggy; kühl cool kühler cooler; dunkel dark; schwül humid; stürmisch stormy"),
];

/// Adjectives used only after "be".
#[rustfmt::skip]
const PREDICATES: &[(Class, &str)] = &[
    (SIGHT | SHOP | EATERY | BANK, "geschlossen closed; geöffnet open"),
    (LODGE, "ausgebucht fully_booked; belegt full"),
    (VEHICLE, "pünktlich on_time/punctual; verspätet late/delayed; überfüllt overcrowded"),
    (EVENT | TICKET, "ausverkauft sold_out"),
    (
        PERSON,
        "zufrieden satisfied/happy; bereit ready; beschäftigt busy; überrascht surprised;
      allein alone; dankbar grateful; enttäuscht disappointed; verliebt in_love",
    ),
    (DEVICE | ROOM, "kaputt broken =; in_ordnung all_right/in_order"),
];

const DEGREES: &[(&str, &str)] = &[
    ("sehr", "very"),
    ("zu", "too"),
    ("ziemlich", "quite/rather"),
    ("wirklich", "really"),
    ("besonders", "particularly/especially"),
];

/// Towns and regions that stand without an article.
const CITIES: &str = "berlin hamburg münchen:munich köln:cologne wien:vienna frankfurt dresden leipzig \
    zürich:zurich bremen heidelberg nürnberg:nuremberg salzburg stuttgart hannover:hanover basel:basle \
    freiburg rom:rome paris weimar bonn prag:prague lübeck:lübeck bern:berne london mailand:milan \
    venedig:venice potsdam münster kopenhagen:copenhagen brüssel:brussels düsseldorf:düsseldorf \
    regensburg genf:geneva italien:italy frankreich:france österreich:austria rostock augsburg erfurt \
    warschau:warsaw bayern:bavaria bamberg spanien:spain konstanz:constance innsbruck luzern:lucerne \
    graz kiel trier passau lissabon:lisbon athen:athens moskau:moscow polen:poland dänemark:denmark \
    görlitz wismar ulm braunschweig:brunswick straßburg:strasbourg goslar tübingen griechenland:greece";

/// First names of women and men.
const WOMEN: &str = "anna maria julia lena sophie clara emma laura katharina eva lisa hannah monika sabine \
    petra susanne ingrid nina marie paula charlotte johanna greta franziska birgit martina helga frieda";
const MEN: &str = "peter paul martin michael stefan jan fabian david daniel karl simon otto jonathan tim \
    florian \
    leon anton georg bernd uwe erik oskar wolfgang konstantin emil hermann ludwig dieter rainer torsten";
/// Family names for people with a title.
const FAMILIES: &str = "müller schmidt schneider fischer weber wagner becker schulz hoffmann koch bauer \
    richter \
    klein wolf neumann schwarz zimmermann krüger hartmann lange krause lehmann köhler herrmann vogel";

/// Number words from zero to nineteen, and the tens from twenty.
const UNITS: &str = "null:zero ein:one zwei:two drei:three vier:four fünf:five sechs:six sieben:seven \
    acht:eight \
    neun:nine zehn:ten elf:eleven zwölf:twelve dreizehn:thirteen vierzehn:fourteen fünfzehn:fifteen \
    sechzehn:sixteen siebzehn:seventeen achtzehn:eighteen neunzehn:nineteen";
const TENS: &str = "zwanzig:twenty dreißig:thirty vierzig:forty fünfzig:fifty sechzig:sixty \
    siebzig:seventy \
    achtzig:eighty neunzig:ninety";

// Tenses as bits, so that adverbs can say which ones they go with.
const PRESENT: u8 = 1;
const PAST: u8 = 2;
const FUTURE: u8 = 4;
/// Habitual present, and the present that lasts since some time.
const HABIT: u8 = 8;

/// Time adverbials. Words carry link marks after "_"; "/" separates English alternatives, "-" means no link.
const TIMES: &[(u8, &str, &str)] = &[
    (PRESENT | PAST | FUTURE, "heute", "today"),
    (PAST, "gestern", "yesterday"),
    (FUTURE, "morgen", "tomorrow"),
    (PRESENT, "jetzt", "now"),
    (PAST | FUTURE, "heute_1 abend_2", "this_1 evening_2/tonight_12"),
    (HABIT, "jeden_1 tag_2", "every_1 day_2"),
    (PAST, "gestern_1 abend_2", "yesterday_1 evening_2/last_1 night_2"),
    (FUTURE, "morgen_1 früh_2", "tomorrow_1 morning_2"),
    (PAST | FUTURE | HABIT, "am_1 abend_2", "in_1 the_1 evening_2"),
    (PAST | FUTURE | HABIT, "am_1 nachmittag_2", "in_1 the_1 afternoon_2"),
    (PAST, "letzte_1 woche_2", "last_1 week_2"),
    (FUTURE, "nächste_1 woche_2", "next_1 week_2"),
    (PRESENT, "gerade", "right now/at the moment/just now"),
    (FUTURE, "bald", "soon"),
    (PAST | FUTURE | HABIT, "nach_1 dem_- essen_2", "after_1 the_- meal_2/after_1 dinner_2"),
    (PAST | FUTURE | HABIT, "vor_1 dem_- frühstück_2", "before_1 breakfast_2"),
    (HABIT, "jeden_1 morgen_2", "every_1 morning_2"),
    (HABIT, "jedes_1 jahr_2", "every_1 year_2"),
    (HABIT, "am_1 wochenende_2", "at_1 the_1 weekend_2/on_1 the_1 weekend_2"),
    (PAST | HABIT | FUTURE, "im_1 sommer_2", "in_1 the_1 summer_2/in_1 summer_2"),
    (PAST | HABIT | FUTURE, "im_1 winter_2", "in_1 the_1 winter_2/in_1 winter_2"),
    (PAST | HABIT | FUTURE, "im_1 herbst_2", "in_1 the_1 autumn_2/in_1 autumn_2/in_1 the_1 fall_2"),
    (PAST | FUTURE, "im_1 frühling_2", "in_1 the_1 spring_2/in_1 spring_2"),
    (PAST, "heute_1 morgen_2", "this_1 morning_2"),
    (PAST, "letztes_1 jahr_2", "last_1 year_2"),
    (PAST, "letzten_1 sommer_2", "last_1 summer_2"),
    (FUTURE, "nächsten_1 monat_2", "next_1 month_2"),
    (FUTURE, "nächstes_1 jahr_2", "next_1 year_2"),
    (PAST, "vorgestern", "the day before yesterday"),
    (FUTURE, "übermorgen", "the day after tomorrow"),
    (PAST, "damals", "at that time/back then"),
    (PAST | FUTURE, "zu_1 weihnachten_2", "at_1 christmas_2"),
    (PAST | FUTURE, "während_1 der_2 fahrt_3", "during_1 the_2 journey_3/during_1 the_2 trip_3"),
    (PRESENT, "im_1 augenblick_2", "at_1 the_1 moment_2"),
    (HABIT, "nachts", "at night"),
    (HABIT, "sonntags", "on sundays"),
];
const WEEKDAYS: &str = "montag:monday samstag:saturday sonntag:sunday freitag:friday dienstag:tuesday \
    mittwoch:wednesday donnerstag:thursday";
const MONTHS: &str = "mai:may juli:july august:august dezember:december april:april juni:june \
    september:september \
    oktober:october märz:march januar:january november:november februar:february";
/// Spans of time: German singular and plural after a dative preposition, English singular.
const SPANS: &[(&str, &str, &str)] = &[
    ("einer woche", "wochen", "week"),
    ("einem jahr", "jahren", "year"),
    ("einer stunde", "stunden", "hour"),
    ("einem monat", "monaten", "month"),
    ("einem tag", "tagen", "day"),
];

/// Adverbs of frequency and attitude: tenses, German, English, and where English puts them ('f' in front).
const ADVERBS: &[(u8, &str, &str, char)] = &[
    (HABIT, "oft", "often", 'm'),
    (PRESENT | PAST | FUTURE, "leider", "unfortunately/sadly", 'f'),
    (HABIT, "immer", "always", 'm'),
    (PRESENT | PAST | FUTURE, "vielleicht", "perhaps/maybe", 'f'),
    (PRESENT | PAST | FUTURE | HABIT, "auch", "also", 'm'),
    (HABIT, "manchmal", "sometimes", 'm'),
    (PAST | FUTURE, "wahrscheinlich", "probably", 'm'),
    (HABIT, "meistens", "usually/mostly", 'm'),
    (HABIT, "nie", "never", 'm'),
    (PAST, "endlich", "finally/at last", 'f'),
    (PAST | FUTURE, "natürlich", "of course/naturally", 'f'),
    (PAST, "zum_1 glück_1", "fortunately_1/luckily_1", 'f'),
    (HABIT, "selten", "rarely/seldom", 'm'),
    (PAST, "plötzlich", "suddenly", 'f'),
    (PAST | FUTURE, "zuerst", "first/at first", 'f'),
    (PAST, "schon", "already", 'm'),
    (PAST | FUTURE, "dann", "then", 'f'),
    (PAST, "gleichzeitig", "at the same time", 'f'),
    (HABIT, "normalerweise", "normally/usually", 'm'),
];

// Kinds of manner, as bits.
const SPEED: u8 = 1;
const COMPANY: u8 = 2;
const FOOT: u8 = 4;
const CARE: u8 = 8;
const LONG: u8 = 16;
const CASH: u8 = 32;
const TURN: u8 = 64;
const CLOCK: u8 = 128;
/// Adverbials of manner by kind.
const MANNERS: &[(u8, &str, &str)] = &[
    (FOOT, "zu_1 fuß_2", "on_1 foot_2"),
    (SPEED, "schnell", "quickly/fast"),
    (COMPANY, "allein", "alone"),
    (LONG, "lange", "for a long time/for long"),
    (CASH, "bar", "in cash"),
    (TURN, "links", "left"),
    (TURN, "rechts", "right"),
    (CARE, "vorsichtig", "carefully"),
    (SPEED, "langsam", "slowly"),
    (CLOCK, "pünktlich", "on time/punctually"),
    (COMPANY, "zusammen", "together"),
    (CASH, "mit_1 kreditkarte_2", "by_1 credit_2 card_2/with_1 a_- credit_2 card_2"),
    (SPEED, "sofort", "immediately/at once"),
    (CARE, "ohne_1 hilfe_2", "without_1 help_2/without_1 any_- help_2"),
    (LONG, "in_1 ruhe_2", "in_1 peace_2"),
    (CLOCK, "viel_1 zu_2 spät_3", "much_1 too_2 late_3/far_1 too_2 late_3"),
    (SPEED, "ohne_1 pause_2", "without_1 a_- break_2"),
    (CLOCK, "mit_1 verspätung_2", "with_1 a_- delay_2/late_2"),
];

/// Prepositions of place that go with any place: German, case, English.
const BESIDE: &[(&str, Case, &str)] = &[
    ("neben", Case::Dat, "next to/beside"),
    ("vor", Case::Dat, "in front of/outside"),
    ("hinter", Case::Dat, "behind"),
    ("in der nähe von", Case::Dat, "near/close to"),
    ("gegenüber von", Case::Dat, "opposite/across from"),
    ("nicht weit von", Case::Dat, "not far from"),
];

/// What a verb does besides taking its objects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    /// "es gibt" and "there is".
    Exist,
    /// The German subject is the English object, as in "gefallen".
    Like,
    /// Takes an adjective.
    Link,
    /// Takes a "dass" clause.
    Say,
    /// Takes an infinitive with "zu".
    Try,
    /// Has the subject "es" and nothing else.
    Rain,
}

/// A verb with its frame.
struct Verb {
    /// The separable particle, or nothing.
    particle: &'static str,
    /// Infinitive, third person, preterite, auxiliary, participle.
    forms: &'static str,
    /// English alternatives with irregular forms after commas. After a space come further words: "+" marks a
    /// particle that objects may precede, "=" swallows the preposition of the prepositional object.
    english: &'static str,
    subject: Class,
    object: Class,
    dative: Class,
    prep: Option<(&'static str, Case, &'static str, Class)>,
    /// Kinds of places where it can happen and how often these are said, in percent.
    place: (Class, usize),
    /// How often a direction is said, in percent.
    direction: usize,
    manner: u8,
    /// A German word fixed before the verb.
    fixed: &'static str,
    reflexive: Option<Case>,
    /// States take no progressive and no modal.
    state: bool,
    kind: Kind,
}

const fn v(particle: &'static str, forms: &'static str, english: &'static str, subject: Class) -> Verb {
    Verb {
        particle,
        forms,
        english,
        subject,
        object: 0,
        dative: 0,
        prep: None,
        place: (0, 0),
        direction: 0,
        manner: 0,
        fixed: "",
        reflexive: None,
        state: false,
        kind: Kind::Plain,
    }
}

impl Verb {
    const fn acc(mut self, class: Class) -> Self {
        self.object = class;
        self
    }
    const fn dat(mut self, class: Class) -> Self {
        self.dative = class;
        self
    }
    const fn prep(mut self, german: &'static str, case: Case, english: &'static str, class: Class) -> Self {
        self.prep = Some((german, case, english, class));
        self
    }
    const fn at(mut self, class: Class, percent: usize) -> Self {
        self.place = (class, percent);
        self
    }
    const fn to(mut self, percent: usize) -> Self {
        self.direction = percent;
        self
    }
    const fn how(mut self, manner: u8) -> Self {
        self.manner = manner;
        self
    }
    const fn fixed(mut self, word: &'static str) -> Self {
        self.fixed = word;
        self
    }
    const fn refl(mut self, case: Case) -> Self {
        self.reflexive = Some(case);
        self
    }
    const fn state(mut self) -> Self {
        self.state = true;
        self
    }
    const fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }
    /// The form with the given number of the German principal parts.
    fn form(&self, index: usize) -> &'static str {
        self.forms.split(' ').nth(index).unwrap_or("")
    }
}

const ANYWHERE: Class = PLACE;
const TOWN: Class = SHOP | SIGHT | EATERY | STOP;
const OBJECTS: Class = THING | CLOTH | LUGGAGE | READ;

/// The verbs, the common ones first.
#[rustfmt::skip]
static VERBS: &[Verb] = &[
    v("", "fahren fährt fuhr ist gefahren", "go,went,gone/travel,travelled,travelled", PERSON).to(100)
        .how(SPEED),
    v("", "kaufen kauft kaufte hat gekauft", "buy,bought,bought/purchase", PERSON).acc(TICKET)
        .at(DESK | STOP, 50),
    v("", "gehen geht ging ist gegangen", "go,went,gone/walk", PERSON).to(100).how(FOOT | COMPANY | SPEED),
    v("an", "kommen kommt kam ist gekommen", "arrive", VEHICLE | PERSON).at(STOP, 90).how(CLOCK),
    v("", "besuchen besucht besuchte hat besucht", "visit", PERSON).acc(SIGHT | KIN),
    v("", "sehen sieht sah hat gesehen", "see,saw,seen", PERSON).acc(SIGHT | PERSON | ANIMAL | VEHICLE)
        .at(ANYWHERE, 35),
    v("", "suchen sucht suchte hat gesucht", "look for/search for", PERSON)
        .acc(OBJECTS | LODGE | EATERY | STOP | PERSON),
    v("ab", "fahren fährt fuhr ist gefahren", "leave,left,left/depart", VEHICLE).at(STOP, 30).how(CLOCK),
    v("", "finden findet fand hat gefunden", "find,found,found", PERSON).acc(OBJECTS | MONEY)
        .at(ANYWHERE | VEHICLE, 55),
    v("", "trinken trinkt trank hat getrunken", "drink,drank,drunk/have,had,had", PERSON).acc(DRINK)
        .at(EATERY, 55),
    v("", "essen isst aß hat gegessen", "eat,ate,eaten/have,had,had", PERSON).acc(FOOD).at(EATERY, 55),
    v("", "warten wartet wartete hat gewartet", "wait/await =", PERSON)
        .prep("auf", Case::Acc, "for", VEHICLE | PERSON | AIR).at(STOP | EATERY | LODGE, 50).how(LONG),
    v("", "kaufen kauft kaufte hat gekauft", "buy,bought,bought", PERSON).acc(FOOD | OBJECTS | FLOWER | MAP)
        .at(SHOP, 50),
    v("", "bestellen bestellt bestellte hat bestellt", "order", PERSON).acc(FOOD | DRINK).at(EATERY, 45),
    v("", "wohnen wohnt wohnte hat gewohnt", "live/stay", PERSON).at(LODGE | STREET | NAMED | WATER, 100),
    v("ein", "steigen steigt stieg ist gestiegen", "get,got,got/board =", PERSON)
        .prep("in", Case::Acc, "on", VEHICLE).at(STOP | NAMED, 45),
    v("aus", "steigen steigt stieg ist gestiegen", "get,got,got off", PERSON).at(STOP | NAMED, 90),
    v("um", "steigen steigt stieg ist gestiegen", "change/change trains", PERSON).at(STOP | NAMED, 90),
    v("ab", "holen holt holte hat geholt", "pick +up/collect", PERSON).acc(PERSON | LUGGAGE | TICKET)
        .at(STOP | LODGE, 60),
    v("", "nehmen nimmt nahm hat genommen", "take,took,taken", PERSON).acc(VEHICLE).to(25),
    v("", "zeigen zeigt zeigte hat gezeigt", "show,showed,shown", PERSON).dat(PERSON)
        .acc(OBJECTS | SIGHT | TICKET | MAP | STOP),
    v("an", "rufen ruft rief hat gerufen", "call/phone/ring,rang,rung +up", PERSON)
        .acc(PERSON | LODGE | EATERY),
    v("", "geben gibt gab hat gegeben", "give,gave,given", PERSON).dat(PERSON)
        .acc(OBJECTS | MONEY | MAP | TICKET),
    v("", "helfen hilft half hat geholfen", "help", PERSON).dat(PERSON).at(TOWN, 40),
    v("mit", "nehmen nimmt nahm hat genommen", "take,took,taken +along/take,took,taken", PERSON)
        .acc(OBJECTS | PERSON).to(30),
    v("", "lesen liest las hat gelesen", "read,read,read", PERSON).acc(READ | SEND)
        .at(ANYWHERE | VEHICLE, 45),
    v("", "buchen bucht buchte hat gebucht", "book/reserve", PERSON).acc(ROOM | EVENT | LODGE),
    v("", "bleiben bleibt blieb ist geblieben", "stay/remain", PERSON).at(ANYWHERE, 100).how(LONG),
    v("", "treffen trifft traf hat getroffen", "meet,met,met", PERSON).acc(PERSON).at(ANYWHERE | STOP, 70),
    v("", "verpassen verpasst verpasste hat verpasst", "miss", PERSON).acc(VEHICLE | EVENT | AIR),
    v("", "liegen liegt lag hat gelegen", "be,was,been/be,was,been located/lie,lay,lain",
        LODGE | SIGHT | EATERY | SHOP).at(WATER | STREET | NAMED, 100).state(),
    v("auf", "machen macht machte hat gemacht", "open", PERSON).acc(DOOR).how(CARE | SPEED),
    v("zu", "machen macht machte hat gemacht", "close/shut,shut,shut", PERSON).acc(DOOR).how(SPEED),
    v("", "bezahlen bezahlt bezahlte hat bezahlt", "pay,paid,paid for", PERSON)
        .acc(TICKET | FOOD | ROOM | LUGGAGE).how(CASH),
    v("", "gefallen gefällt gefiel hat gefallen", "like", SIGHT | LODGE | EVENT | ROOM | CLOTH).dat(PERSON)
        .state().kind(Kind::Like),
    v("", "öffnen öffnet öffnete hat geöffnet", "open", PERSON).acc(DOOR | SEND).how(CARE),
    v("", "kosten kostet kostete hat gekostet", "cost,cost,cost/be,was,been",
        TICKET | ROOM | FOOD | CLOTH | EVENT).acc(PRICE).state(),
    v("", "sprechen spricht sprach hat gesprochen", "speak,spoke,spoken/talk", PERSON)
        .prep("mit", Case::Dat, "to/with", PERSON).at(ANYWHERE | VEHICLE, 50),
    v("", "halten hält hielt hat gehalten", "stop", VEHICLE).at(STOP | NAMED, 100),
    v("an", "sehen sieht sah hat gesehen", "look at/have,had,had a look at", PERSON).refl(Case::Dat)
        .acc(SIGHT | EVENT | MAP | ROOM),
    v("", "arbeiten arbeitet arbeitete hat gearbeitet", "work", PERSON)
        .at(ANYWHERE | SHOP | EATERY | LODGE, 100),
    v("", "bringen bringt brachte hat gebracht", "bring,brought,brought", PERSON | STAFF).dat(PERSON)
        .acc(FOOD | DRINK | READ),
    v("", "vergessen vergisst vergaß hat vergessen", "forget,forgot,forgotten/leave,left,left +behind",
        PERSON).acc(THING | LUGGAGE | TICKET).at(VEHICLE | LODGE | EATERY, 75).state(),
    v("", "beginnen beginnt begann hat begonnen", "begin,began,begun/start", EVENT).at(PLACE, 20),
    v("", "reservieren reserviert reservierte hat reserviert", "reserve/book", PERSON).acc(ROOM | TICKET),
    v("", "schreiben schreibt schrieb hat geschrieben", "write,wrote,written", PERSON).dat(PERSON).acc(SEND),
    v("mit", "bringen bringt brachte hat gebracht", "bring,brought,brought +along/bring,brought,brought",
        PERSON).acc(FOOD | OBJECTS | FLOWER),
    v("", "brauchen braucht brauchte hat gebraucht", "need", PERSON).acc(THING | MAP | ROOM | MONEY).state(),
    v("", "kennen kennt kannte hat gekannt", "know,knew,known", PERSON).acc(SIGHT | PERSON | EATERY | LODGE)
        .state(),
    v("", "verlieren verliert verlor hat verloren", "lose,lost,lost", PERSON).acc(THING | MONEY | TICKET)
        .at(ANYWHERE | VEHICLE, 55),
    v("", "schmecken schmeckt schmeckte hat geschmeckt", "like", FOOD).dat(PERSON).state().kind(Kind::Like),
    v("", "empfehlen empfiehlt empfahl hat empfohlen", "recommend >", PERSON).dat(PERSON)
        .acc(EATERY | LODGE | FOOD | SIGHT),
    v("an", "fangen fängt fing hat gefangen", "begin,began,begun/start", EVENT),
    v("", "haben hat hatte hat gehabt", "be,was,been hungry", PERSON).fixed("hunger").state(),
    v("", "sitzen sitzt saß hat gesessen", "sit,sat,sat", PERSON).at(SEAT, 100).how(COMPANY),
    v("", "tragen trägt trug hat getragen", "wear,wore,worn", PERSON).acc(CLOTH),
    v("", "tragen trägt trug hat getragen", "carry", PERSON).acc(LUGGAGE).to(60),
    v("statt", "finden findet fand hat gefunden", "take,took,taken place/be,was,been held", EVENT)
        .at(SIGHT | PLACE, 75),
    v("ein", "kaufen kauft kaufte hat gekauft", "go,went,gone shopping/do,did,done the shopping", PERSON)
        .at(SHOP, 75),
    v("", "fragen fragt fragte hat gefragt", "ask", PERSON).acc(PERSON)
        .prep("nach", Case::Dat, "about/for", EVENT | TICKET | ROOM),
    v("auf", "stehen steht stand ist gestanden", "get,got,got up", PERSON).how(SPEED),
    v("", "mieten mietet mietete hat gemietet", "rent/hire", PERSON).acc(RIDE | LODGE).at(STOP | SHOP, 30),
    v("", "gehören gehört gehörte hat gehört", "belong to", THING | LUGGAGE | CLOTH | RIDE).dat(PERSON)
        .state(),
    v("", "reparieren repariert reparierte hat repariert", "repair/fix", PERSON | STAFF).acc(DEVICE),
    v("", "machen macht machte hat gemacht", "take,took,taken photos/take,took,taken pictures", PERSON)
        .fixed("fotos").at(SIGHT, 70),
    v("", "gehen geht ging ist gegangen", "go,went,gone for a walk", PERSON).fixed("spazieren")
        .at(SIGHT | WATER, 75),
    v("", "dauern dauert dauerte hat gedauert", "take,took,taken/last", EVENT).acc(SPAN).state(),
    v("", "übernachten übernachtet übernachtete hat übernachtet", "spend,spent,spent the night", PERSON)
        .at(LODGE, 100),
    v("", "freuen freut freute hat gefreut", "look forward", PERSON).refl(Case::Acc)
        .prep("auf", Case::Acc, "to", EVENT),
    v("", "danken dankt dankte hat gedankt", "thank", PERSON).dat(PERSON),
    v("", "verkaufen verkauft verkaufte hat verkauft", "sell,sold,sold", PERSON | STAFF)
        .acc(TICKET | FOOD | FLOWER | THING).at(SHOP, 60),
    v("ein", "laden lädt lud hat geladen", "invite", PERSON).acc(PERSON).prep("zu", Case::Dat, "to", EVENT),
    v("", "schicken schickt schickte hat geschickt", "send,sent,sent", PERSON).dat(PERSON)
        .acc(SEND | FLOWER | READ),
    v("", "fotografieren fotografiert fotografierte hat fotografiert",
        "photograph/take,took,taken pictures of", PERSON).acc(SIGHT | ANIMAL),
    v("", "erreichen erreicht erreichte hat erreicht", "catch,caught,caught/reach", PERSON).acc(VEHICLE)
        .how(CLOCK),
    v("aus", "sehen sieht sah hat gesehen", "look", SIGHT | PERSON | FOOD | LODGE | ROOM).state()
        .kind(Kind::Link),
    v("", "setzen setzt setzte hat gesetzt", "sit,sat,sat down", PERSON).refl(Case::Acc)
        .prep("auf", Case::Acc, "on", SEAT),
    v("", "haben hat hatte hat gehabt", "be,was,been late/be,was,been delayed", VEHICLE).fixed("verspätung")
        .state(),
    v("", "schließen schließt schloss hat geschlossen", "close/shut,shut,shut", SHOP | SIGHT | EATERY | BANK),
    v("ab", "biegen biegt bog ist gebogen", "turn", PERSON).at(CORNER, 100).how(TURN),
    v("", "überqueren überquert überquerte hat überquert", "cross", PERSON).acc(STREET | CORNER)
        .how(CARE | SPEED),
    v("", "verlaufen verläuft verlief hat verlaufen", "get,got,got lost", PERSON).refl(Case::Acc)
        .at(PLACE, 80).state(),
    v("", "fliegen fliegt flog ist geflogen", "fly,flew,flown", PERSON | STAFF).to(100),
    v("", "wechseln wechselt wechselte hat gewechselt", "change/exchange", PERSON).acc(MONEY).at(BANK, 80),
    v("aus", "füllen füllt füllte hat gefüllt", "fill +out/fill +in/complete", PERSON).acc(FORM)
        .at(BANK | DESK, 50),
    v("", "interessieren interessiert interessierte hat interessiert", "be,was,been interested", PERSON)
        .refl(Case::Acc).prep("für", Case::Acc, "in", SIGHT | EVENT | READ).state(),
    v("", "erinnern erinnert erinnerte hat erinnert", "remember =", PERSON).refl(Case::Acc)
        .prep("an", Case::Acc, "", EVENT | PERSON | LODGE).state(),
    v("", "haben hat hatte hat gehabt", "be,was,been thirsty", PERSON).fixed("durst").state(),
    v("", "haben hat hatte hat gehabt", "have,had,had time", PERSON).fixed("zeit").state(),
    v("", "machen macht machte hat gemacht", "be,was,been on holiday/be,was,been on vacation", PERSON)
        .fixed("urlaub").at(LODGE | WATER, 75).state(),
    v("", "streichen streicht strich hat gestrichen", "paint", PERSON | STAFF).acc(WALL),
    v("", "füttern füttert fütterte hat gefüttert", "feed,fed,fed", PERSON).acc(ANIMAL).at(WATER, 30),
    v("", "schenken schenkt schenkte hat geschenkt", "give,gave,given", PERSON).dat(KIN)
        .acc(FLOWER | THING | CLOTH),
    v("", "schlafen schläft schlief hat geschlafen", "sleep,slept,slept", PERSON | ANIMAL)
        .at(LODGE | VEHICLE | SEAT, 80).how(LONG),
    v("", "haben hat hatte hat gehabt", "be,was,been afraid", PERSON).fixed("angst")
        .prep("vor", Case::Dat, "of", ANIMAL).state(),
    v("aus", "ruhen ruht ruhte hat geruht", "rest", PERSON).refl(Case::Acc).at(SEAT | LODGE, 70),
    v("ab", "heben hebt hob hat gehoben", "withdraw,withdrew,withdrawn", PERSON).acc(MONEY).at(BANK, 80),
    v("", "unterschreiben unterschreibt unterschrieb hat unterschrieben", "sign", PERSON).acc(FORM)
        .at(BANK | LODGE, 50),
    v("", "drücken drückt drückte hat gedrückt", "press/push", PERSON).acc(BUTTON),
    v("", "feiern feiert feierte hat gefeiert", "celebrate", PERSON).at(EATERY | WATER, 80)
        .how(COMPANY | LONG),
    v("", "folgen folgt folgte ist gefolgt", "follow", PERSON).dat(PERSON | STAFF).to(50),
    v("auf", "hören hört hörte hat gehört", "end/finish", EVENT).how(CLOCK),
    v("", "wandern wandert wanderte ist gewandert", "hike/walk", PERSON).to(80).how(COMPANY | LONG),
    v("", "baden badet badete hat gebadet", "swim,swam,swum/bathe", PERSON).at(WATER, 50).how(LONG),
    v("vorbei", "gehen geht ging ist gegangen", "walk past =/go,went,gone past =", PERSON)
        .prep("an", Case::Dat, "past", SIGHT | SHOP | EATERY),
    v("ein", "schlafen schläft schlief ist geschlafen", "fall,fell,fallen asleep", PERSON)
        .at(VEHICLE | SEAT, 80),
    v("", "frühstücken frühstückt frühstückte hat gefrühstückt", "have,had,had breakfast", PERSON)
        .at(EATERY | LODGE, 75).how(LONG),
    v("", "essen isst aß hat gegessen", "have,had,had lunch", PERSON).fixed("zu mittag").at(EATERY, 80),
    v("", "beeilen beeilt beeilte hat beeilt", "hurry", PERSON).refl(Case::Acc).state(),
    v("", "finden findet fand hat gefunden", "find,found,found", PERSON).acc(LODGE | EATERY | SHOP)
        .at(STREET | STOP, 60),
    v("zurück", "kommen kommt kam ist gekommen", "come,came,come back/return", PERSON).how(CLOCK),
    v("zurück", "geben gibt gab hat gegeben", "give,gave,given +back/return", PERSON)
        .acc(THING | RIDE | READ),
    v("", "führen führt führte hat geführt", "lead,led,led", STREET).to(100).state(),
    v("ab", "fliegen fliegt flog ist geflogen", "leave,left,left/take,took,taken off", AIR).how(CLOCK),
    v("", "landen landet landete ist gelandet", "land", AIR | PERSON).at(STOP, 60).how(CLOCK),
    v("um", "tauschen tauscht tauschte hat getauscht", "exchange", PERSON).acc(CLOTH | TICKET | THING)
        .at(SHOP, 50),
    v("", "stehlen stiehlt stahl hat gestohlen", "steal,stole,stolen", PERSON).acc(THING | MONEY | RIDE)
        .at(ANYWHERE, 50),
];

/// Verbs that take a clause or an infinitive.
#[rustfmt::skip]
static SPEECH: &[Verb] = &[
    v("", "sagen sagt sagte hat gesagt", "say,said,said", PERSON).kind(Kind::Say).state(),
    v("", "glauben glaubt glaubte hat geglaubt", "think,thought,thought/believe", PERSON).kind(Kind::Say)
        .state(),
    v("", "versuchen versucht versuchte hat versucht", "try", PERSON).kind(Kind::Try).state(),
    v("", "hoffen hofft hoffte hat gehofft", "hope", PERSON).kind(Kind::Say).state(),
    v("", "wissen weiß wusste hat gewusst", "know,knew,known", PERSON).kind(Kind::Say).state(),
    v("", "denken denkt dachte hat gedacht", "think,thought,thought", PERSON).kind(Kind::Say).state(),
    v("", "vergessen vergisst vergaß hat vergessen", "forget,forgot,forgotten", PERSON).kind(Kind::Try)
        .state(),
    v("", "hören hört hörte hat gehört", "hear,heard,heard", PERSON).kind(Kind::Say).state(),
    v("vor", "haben hat hatte hat gehabt", "plan/intend", PERSON).kind(Kind::Try).state(),
    v("", "lesen liest las hat gelesen", "read,read,read", PERSON).kind(Kind::Say).state(),
    v("", "beschließen beschließt beschloss hat beschlossen", "decide", PERSON).kind(Kind::Try).state(),
];
static BE: Verb = v("", "sein ist war ist gewesen", "be,was,been", 0).state().kind(Kind::Link);
static EXIST: Verb = v("", "geben gibt gab hat gegeben", "be,was,been", 0)
    .acc(LODGE | EATERY | SHOP | SIGHT | DESK | BANK | EVENT)
    .at(NAMED | STREET | WATER | STOP, 100)
    .state()
    .kind(Kind::Exist);
static WEATHERS: &[Verb] = &[
    v("", "regnen regnet regnete hat geregnet", "rain", 0).at(WATER, 15).kind(Kind::Rain),
    v("", "schneien schneit schneite hat geschneit", "snow", 0).at(WATER, 10).kind(Kind::Rain),
];
static SHINE: Verb = v("", "scheinen scheint schien hat geschienen", "shine,shone,shone", SKY);

/// A modal verb: German present forms and preterite, English for present, past, and present negated.
struct Modal {
    forms: &'static str,
    past: &'static str,
    english: &'static str,
    english_past: &'static str,
    english_not: &'static str,
}
const fn modal(
    forms: &'static str,
    past: &'static str,
    english: &'static str,
    english_past: &'static str,
    english_not: &'static str,
) -> Modal {
    Modal { forms, past, english, english_past, english_not }
}
const MODALS: &[Modal] = &[
    modal("möchte möchtest möchte möchten möchtet möchten", "wollte", "would like to", "want to", "want to"),
    modal(
        "kann kannst kann können könnt können",
        "konnte",
        "can/be able to",
        "could/be able to",
        "can/be able to",
    ),
    modal("muss musst muss müssen müsst müssen", "musste", "have to/must", "have to", "have to/need to"),
    modal("will willst will wollen wollt wollen", "wollte", "want to", "want to", "want to"),
    modal(
        "soll sollst soll sollen sollt sollen",
        "sollte",
        "should/be supposed to",
        "be supposed to",
        "should",
    ),
    modal(
        "darf darfst darf dürfen dürft dürfen",
        "durfte",
        "be allowed to/may/can",
        "be allowed to",
        "must/may",
    ),
];

/// A row of pronouns: nominative, accusative, dative, possessive stem, German person; English subject,
/// object, possessive, agreement.
struct Pronoun {
    german: [&'static str; 4],
    person: usize,
    english: [&'static str; 3],
    agreement: Agreement,
}
const fn pronoun(
    german: [&'static str; 4],
    person: usize,
    english: [&'static str; 3],
    agreement: Agreement,
) -> Pronoun {
    Pronoun { german, person, english, agreement }
}
const YOU: [&str; 3] = ["you", "you", "your"];
const IT: [&str; 3] = ["it", "it", "its"];
const PRONOUNS: &[Pronoun] = &[
    pronoun(["ich", "mich", "mir", "mein"], 0, ["i", "me", "my"], Agreement::I),
    pronoun(["wir", "uns", "uns", "unser"], 3, ["we", "us", "our"], Agreement::Many),
    pronoun(["er", "ihn", "ihm", "sein"], 2, ["he", "him", "his"], Agreement::One),
    pronoun(["sie", "sie", "ihr", "ihr"], 2, ["she", "her", "her"], Agreement::One),
    pronoun(["sie", "sie", "ihnen", "ihr"], 5, ["they", "them", "their"], Agreement::Many),
    pronoun(["du", "dich", "dir", "dein"], 1, YOU, Agreement::Many),
    pronoun(["ihr", "euch", "euch", "euer"], 4, YOU, Agreement::Many),
    pronoun(["sie", "sie", "ihnen", "ihr"], 5, YOU, Agreement::Many),
    pronoun(["man", "einen", "einem", "sein"], 2, YOU, Agreement::Many),
    pronoun(["es", "es", "ihm", "sein"], 2, IT, Agreement::One),
    pronoun(["er", "ihn", "ihm", "sein"], 2, IT, Agreement::One),
    pronoun(["sie", "sie", "ihr", "ihr"], 2, IT, Agreement::One),
    pronoun(["wer", "wen", "wem", "sein"], 2, ["who", "who", "whose"], Agreement::One),
    pronoun(["was", "was", "was", "sein"], 2, ["what", "what", "whose"], Agreement::One),
];
const I: usize = 0;
const HE: usize = 2;
const SHE: usize = 3;
const THEY: usize = 4;
const POLITE: usize = 7;
const ES: usize = 9;
const WHO: usize = 12;
const WHAT: usize = 13;

/// How a clause is joined to another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    /// Verb-final clause.
    Final,
    /// Main clause after the conjunction.
    Second,
    /// The conjunction is an adverb that inverts the clause.
    Inverted,
    /// Infinitive with "zu", English "to".
    To,
    /// Infinitive with "zu", English "-ing".
    Ing,
}

/// A conjunction in both languages; "~" is the empty alternative.
struct Conjunction {
    german: &'static str,
    english: &'static str,
    join: Join,
}
const fn conjunction(german: &'static str, english: &'static str, join: Join) -> Conjunction {
    Conjunction { german, english, join }
}
static BECAUSE: Conjunction = conjunction("weil/da", "because/since/as", Join::Final);
static ALTHOUGH: Conjunction = conjunction("obwohl", "although/even though/though", Join::Final);
static IF: Conjunction = conjunction("wenn/falls", "if", Join::Final);
static WHENEVER: Conjunction = conjunction("wenn", "when/whenever", Join::Final);
static WHEN: Conjunction = conjunction("als", "when/as", Join::Final);
static BEFORE: Conjunction = conjunction("bevor", "before", Join::Final);
static AFTER: Conjunction = conjunction("nachdem", "after", Join::Final);
static WHILE: Conjunction = conjunction("während", "while", Join::Final);
static THAT: Conjunction = conjunction("dass", "that/~", Join::Final);
static IN_ORDER: Conjunction = conjunction("um", "~/in order", Join::To);
static WITHOUT: Conjunction = conjunction("ohne", "without", Join::Ing);
static BARE: Conjunction = conjunction("~", "~", Join::To);
static COORDINATE: &[Conjunction] = &[
    conjunction("und", "and", Join::Second),
    conjunction("aber", "but", Join::Second),
    conjunction("denn", "because/for", Join::Second),
    conjunction("deshalb/darum", "so/and so/which is why", Join::Inverted),
    conjunction("trotzdem", "but nevertheless/and yet", Join::Inverted),
];
/// Question words; the last element says what the clause must leave out.
const QUESTIONS: &[(&str, &str, char)] = &[
    ("wann", "when", 't'),
    ("wo", "where", 'p'),
    ("warum", "why", '-'),
    ("wohin", "where", 'd'),
    ("um_1 wie_2 viel_2 uhr_2", "at_1 what_2 time_2/what_2 time_2", 't'),
    ("mit_1 wem_2", "with_1 whom_2", 'w'),
    ("wie_1 oft_2", "how_1 often_2", 't'),
    ("wieso", "why", '-'),
    ("seit_1 wann_2", "since_1 when_2", 's'),
];
/// Openings of indirect questions; the last element is the final punctuation.
const OPENINGS: &[(&str, &str, &str)] = &[
    (
        "können_1 sie_2 mir_3 bitte_4 sagen_5",
        "can_1 you_2 please_4 tell_5 me_3/could_1 you_2 please_4 tell_5 me_3",
        "?",
    ),
    ("wissen_1 sie_2", "do_1 you_2 know_1", "?"),
    ("ich_1 weiß_2 nicht_3", "i_1 do_2 not_3 know_2", "."),
    ("ich_1 möchte_2 wissen_3", "i_1 would_2 like_2 to_2 know_3/i_1 want_2 to_2 know_3", "."),
    ("weißt_1 du_2", "do_1 you_2 know_1", "?"),
    ("sagen_1 sie_- mir_2 bitte_3", "please_3 tell_1 me_2", "."),
    ("niemand_1 weiß_2", "nobody_1 knows_2/no_1 one_1 knows_2", "."),
    ("ich_1 habe_2 vergessen_3", "i_1 have_2 forgotten_3/i_1 forgot_23", "."),
    ("es_1 ist_2 nicht_3 klar_4", "it_1 is_2 not_3 clear_4", "."),
    ("haben_1 sie_2 gehört_3", "have_1 you_2 heard_3/did_1 you_2 hear_3", "?"),
];

// ---------------------------------------------------------------------------------------------------------
// The tree
// ---------------------------------------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Nom,
    Acc,
    Dat,
    Gen,
}

/// English agreement of a subject with its verb.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Agreement {
    I,
    One,
    Many,
}

/// A noun as read from the table; the column is 0 for masculine, 1 feminine, 2 neuter.
struct Noun {
    german: &'static str,
    plural: &'static str,
    column: usize,
    weak: bool,
    english: &'static str,
    class: Class,
    there: &'static str,
    english_there: &'static str,
    parts: &'static str,
}

/// An adjective as read from the table.
struct Adjective {
    german: &'static str,
    english: &'static str,
    /// The comparatives. In the first, "!" marks ordinals and the like, "*" what is only used before nouns,
    /// "=" what has no degrees.
    more: &'static str,
    english_more: &'static str,
    class: Class,
    predicate: bool,
}

static NOUN_LIST: LazyLock<Vec<Noun>> = LazyLock::new(|| {
    let mut list = Vec::new();
    for &(class, there, english_there, text) in NOUNS {
        for entry in text.split(';') {
            let mut fields = entry.split_whitespace();
            let mut next = || fields.next().unwrap_or("");
            let (german, plural, gender, english, parts) = (next(), next(), next(), next(), next());
            let column = match gender {
                "f" => 1,
                "n" => 2,
                _ => 0,
            };
            let parts =
                PARTS.iter().find(|part| Some(part.0) == parts.strip_prefix('<')).map_or("", |part| part.1);
            let plural = if plural == "-" { "" } else { plural };
            let german = if german == "-" { "" } else { german };
            let weak = gender == "w";
            list.push(Noun { german, plural, column, weak, english, class, there, english_there, parts });
        }
    }
    list
});

static ADJECTIVE_LIST: LazyLock<Vec<Adjective>> = LazyLock::new(|| {
    let mut list = Vec::new();
    for (table, predicate) in [(ADJECTIVES, false), (PREDICATES, true)] {
        for &(class, text) in table {
            for entry in text.split(';') {
                let mut fields = entry.split_whitespace();
                let mut next = || fields.next().unwrap_or("");
                let (german, english, more, english_more) = (next(), next(), next(), next());
                list.push(Adjective { german, english, more, english_more, class, predicate });
            }
        }
    }
    list
});

/// The determiner of a noun phrase.
#[derive(Clone)]
enum Det {
    None,
    Def,
    /// Definite in German, nothing in English.
    Bare,
    Indef,
    Kein,
    /// English only: what remains of "kein" if the verb is negated.
    Any,
    Poss(usize),
    This,
    Each,
    All,
    Which,
    /// "etwas".
    Some,
    Number(usize),
    /// German stem and English.
    Quantity(&'static str, &'static str),
    /// A name in the genitive.
    Name(&'static str),
}

/// The head of a noun phrase.
#[derive(Clone)]
enum Head {
    /// A noun with perhaps the first part of a compound.
    Noun(&'static Noun, Option<(&'static str, &'static str)>),
    /// A name in both languages, with the pronoun that stands for it.
    Name(String, String, usize),
    Pronoun(usize),
    /// A relative pronoun: gender column and whether it stands for people.
    Relative(usize, bool),
}

/// What follows the head of a noun phrase.
#[derive(Clone)]
enum Post {
    Genitive(Box<Phrase>),
    Place(Box<Prepositional>),
    /// What a glass or a piece is of.
    Of(Box<Phrase>),
    Relative(Box<Clause>),
}

/// A noun phrase.
#[derive(Clone)]
struct Phrase {
    mark: u32,
    head: Head,
    det: Det,
    plural: bool,
    adjectives: Vec<&'static Adjective>,
    post: Option<Post>,
    and: Option<Box<Phrase>>,
}

/// A prepositional phrase.
#[derive(Clone)]
struct Prepositional {
    german: &'static str,
    case: Case,
    english: &'static str,
    phrase: Phrase,
}

/// A fixed expression in the notation of the tables.
#[derive(Clone)]
struct Expression {
    mark: u32,
    german: String,
    english: String,
}

/// An adjective after a verb, perhaps compared.
#[derive(Clone)]
struct Predicate {
    mark: u32,
    degree: Option<(&'static str, &'static str)>,
    adjective: &'static Adjective,
    than: Option<Phrase>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tense {
    Present,
    Habit,
    Past,
    Before,
    Future,
    Since,
}

/// A clause before its words are put in order.
#[derive(Clone)]
#[allow(clippy::struct_excessive_bools)]
struct Clause {
    mark: u32,
    verb: &'static Verb,
    subject: Phrase,
    /// The subject is understood.
    silent: bool,
    object: Option<Phrase>,
    dative: Option<Phrase>,
    prep: Option<Prepositional>,
    direction: Option<Prepositional>,
    place: Option<Prepositional>,
    company: Option<Prepositional>,
    predicate: Option<Predicate>,
    times: Vec<Expression>,
    adverb: Option<(Expression, char)>,
    manner: Option<Expression>,
    tense: Tense,
    /// The German past is the preterite.
    narrative: bool,
    modal: Option<&'static Modal>,
    /// "gern".
    gladly: bool,
    negated: bool,
    passive: bool,
    /// Another clause settles the time, so English has no present perfect.
    settled: bool,
}

/// A clause with the conjunction that joins it.
struct Joined {
    mark: u32,
    conjunction: &'static Conjunction,
    clause: Clause,
    front: bool,
}

/// What kind of sentence is said.
enum Mood {
    Statement,
    YesNo,
    Question(Expression),
    /// Question about the subject or a "which" phrase, which is already in the clause.
    Which,
    Command,
    /// An indirect question after an opening, with its question word.
    Indirect(Expression, Expression, &'static str),
}

/// A whole sentence.
struct Sentence {
    mark: u32,
    mood: Mood,
    main: Clause,
    joined: Option<Joined>,
}

// Marks within the block of a noun phrase.
const M_NOUN: u32 = 0;
const M_DET: u32 = 1;
const M_ADJECTIVE: u32 = 2;
const M_PREP: u32 = 5;
const M_AND: u32 = 6;
// Marks within the block of a clause.
const M_VERB: u32 = 0;
const M_FINITE: u32 = 1;
const M_NOT: u32 = 2;
const M_GLADLY: u32 = 3;
const M_PASSIVE: u32 = 4;
const M_COMMA: u32 = 15;
const M_STOP: u32 = 14;

// ---------------------------------------------------------------------------------------------------------
// Drawing a tree
// ---------------------------------------------------------------------------------------------------------

/// The source of all choices, and of fresh marks.
struct Dice<'a> {
    below: &'a mut dyn FnMut(usize) -> usize,
    marks: u32,
}

impl Dice<'_> {
    fn roll(&mut self, n: usize) -> usize {
        (self.below)(n.max(1))
    }
    fn chance(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }
    /// A number below n, the small ones being much likelier.
    fn skew(&mut self, n: usize) -> usize {
        let bound = self.roll(n);
        self.roll(bound + 1)
    }
    /// An index into a list of weights.
    fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut at = self.roll(weights.iter().sum());
        for (index, &weight) in weights.iter().enumerate() {
            if at < weight {
                return index;
            }
            at -= weight;
        }
        0
    }
    fn pick<'t, T>(&mut self, list: &'t [T]) -> &'t T {
        &list[self.skew(list.len())]
    }
    /// One of the alternatives in a text.
    fn alternative<'t>(&mut self, text: &'t str) -> &'t str {
        let index = self.skew(text.split('/').count());
        text.split('/').nth(index).unwrap_or(text)
    }
    /// One of the words in a text, with its translation if it has one.
    fn word(&mut self, text: &'static str) -> (&'static str, &'static str) {
        let index = self.skew(text.split_whitespace().count());
        let word = text.split_whitespace().nth(index).unwrap_or("");
        word.split_once(':').unwrap_or((word, word))
    }
    fn mark(&mut self) -> u32 {
        self.marks += 16;
        self.marks
    }
    fn expression(&mut self, german: &str, english: &str) -> Expression {
        Expression { mark: self.mark(), german: german.to_string(), english: english.to_string() }
    }
}

/// The role of a noun phrase decides about its determiner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Subject,
    Object,
    Place,
}

fn simple(dice: &mut Dice, head: Head) -> Phrase {
    Phrase {
        mark: dice.mark(),
        head,
        det: Det::None,
        plural: false,
        adjectives: Vec::new(),
        post: None,
        and: None,
    }
}

fn pronoun_phrase(dice: &mut Dice, index: usize) -> Phrase {
    simple(dice, Head::Pronoun(index))
}

fn noun_with(dice: &mut Dice, class: Class, without: Class) -> &'static Noun {
    let fits = |noun: &&Noun| noun.class & class != 0 && noun.class & without == 0;
    let list: Vec<&'static Noun> = NOUN_LIST.iter().filter(fits).collect();
    if list.is_empty() { &NOUN_LIST[0] } else { list[dice.skew(list.len())] }
}

/// A number from two upwards, mostly small.
fn number(dice: &mut Dice, most: usize) -> usize {
    let most = if dice.chance(60) { most.min(6) } else { most };
    2 + dice.skew(most.saturating_sub(2))
}

fn determiner(dice: &mut Dice, noun: &Noun, plural: bool, role: Role) -> Det {
    const QUANTITIES: &[(&str, &str)] =
        &[("viel", "many/a lot of"), ("einig", "some/a few"), ("mehrer", "several"), ("wenig", "few")];
    if noun.class & NAMED != 0 {
        return Det::Bare;
    }
    if noun.class & (PRICE | SPAN) != 0 {
        return Det::Number(number(dice, if noun.class & PRICE != 0 { 99 } else { 20 }));
    }
    let own = noun.class & OWN != 0;
    if own && dice.chance(if noun.class & KIN != 0 { 80 } else { 14 }) {
        return if dice.chance(12) && !plural {
            let names = if dice.chance(50) { WOMEN } else { MEN };
            Det::Name(dice.word(names).0)
        } else {
            Det::Poss(*dice.pick(&[I, 1, HE, SHE, THEY, 5]))
        };
    }
    if noun.plural.is_empty() {
        return match dice.roll(100) {
            0..55 if noun.class & MASS != 0 && role == Role::Object => Det::None,
            55..65 if noun.class & MASS != 0 && role == Role::Object => Det::Some,
            _ => Det::Def,
        };
    }
    let weights = match (plural, role) {
        // none, the, number, quantity, this, all, a, each
        (true, Role::Object) => [35, 30, 16, 12, 5, 2, 0, 0],
        (true, Role::Subject) => [0, 55, 14, 16, 7, 8, 0, 0],
        (true, Role::Place) => [0, 80, 8, 5, 7, 0, 0, 0],
        (false, Role::Object) => [0, 42, 0, 0, 8, 0, 50, 0],
        (false, Role::Subject) => [0, 68, 0, 0, 10, 0, 16, 6],
        (false, Role::Place) => [0, 84, 0, 0, 6, 0, 10, 0],
    };
    match dice.weighted(&weights) {
        0 if noun.class & PERSON == 0 => Det::None,
        2 => Det::Number(number(dice, 20)),
        3 => {
            let &(german, english) = dice.pick(QUANTITIES);
            Det::Quantity(german, english)
        }
        4 => Det::This,
        5 => Det::All,
        6 => Det::Indef,
        7 => Det::Each,
        _ => Det::Def,
    }
}

fn adjective(dice: &mut Dice, class: Class, predicate: bool) -> Option<&'static Adjective> {
    let fits = |a: &&Adjective| {
        a.class & class != 0 && if predicate { !matches!(a.more, "!" | "*") } else { !a.predicate }
    };
    let list: Vec<&'static Adjective> = ADJECTIVE_LIST.iter().filter(fits).collect();
    if list.is_empty() { None } else { Some(list[dice.skew(list.len())]) }
}

/// A noun phrase with a noun of one of the classes.
fn noun_phrase(dice: &mut Dice, class: Class, without: Class, role: Role) -> Phrase {
    let noun = noun_with(dice, class, without);
    let part = (!noun.parts.is_empty() && (noun.class & NAMED != 0 || dice.chance(45)))
        .then(|| dice.word(noun.parts));
    let often = if class & (FOOD | FLOWER | CLOTH) != 0 { 45 } else { 22 };
    let plural = noun.german.is_empty()
        || noun.class & (PRICE | SPAN) != 0
        || (!noun.plural.is_empty() && role != Role::Place && dice.chance(often))
        || (!noun.plural.is_empty() && role == Role::Place && dice.chance(6));
    let mut phrase = simple(dice, Head::Noun(noun, part));
    phrase.plural = plural;
    phrase.det = determiner(dice, noun, plural, role);
    if dice.chance(30)
        && noun.class & (NAMED | PRICE | SPAN) == 0
        && !matches!(phrase.det, Det::Each | Det::Some)
        && let Some(adjective) = adjective(dice, noun.class, false)
    {
        if adjective.more == "!" {
            phrase.det = Det::Def;
            phrase.plural = phrase.plural && noun.german.is_empty();
        }
        phrase.adjectives.push(adjective);
    }
    if matches!(noun.english, "bread" | "cake" | "cheese" | "chocolate" | "meat") && dice.chance(30) {
        return measured(dice, 3, phrase);
    }
    if noun.class & DRINK != 0 && role == Role::Object && dice.chance(50) {
        let hot = matches!(noun.german, "kaffee" | "tee" | "kakao");
        let which = if hot { 1 } else { 2 * dice.roll(2) };
        return measured(dice, which, phrase);
    }
    if matches!(phrase.det, Det::Def) && phrase.adjectives.is_empty() {
        postmodify(dice, &mut phrase, noun.class);
    }
    phrase
}

/// A glass, cup, bottle or piece of something.
fn measured(dice: &mut Dice, which: usize, mut what: Phrase) -> Phrase {
    let measures: Vec<&'static Noun> = NOUN_LIST.iter().filter(|noun| noun.class & MEASURE != 0).collect();
    let Some(&noun) = measures.get(which) else { return what };
    what.det = Det::None;
    what.plural = false;
    what.adjectives.clear();
    what.post = None;
    let mut phrase = simple(dice, Head::Noun(noun, None));
    phrase.plural = dice.chance(35);
    phrase.det = if phrase.plural { Det::Number(number(dice, 12)) } else { Det::Indef };
    phrase.post = Some(Post::Of(Box::new(what)));
    phrase
}

/// Adds an owner or a place to a definite noun phrase now and then.
fn postmodify(dice: &mut Dice, phrase: &mut Phrase, class: Class) {
    if class & (THING | LUGGAGE | RIDE | CLOTH | ROOM) != 0 && dice.chance(22) {
        let mut owner = noun_phrase(dice, PERSON, 0, Role::Subject);
        owner.post = None;
        if matches!(owner.det, Det::Poss(_)) || !owner.plural {
            if !matches!(owner.det, Det::Poss(_) | Det::Indef | Det::This) {
                owner.det = Det::Def;
            }
            phrase.post = Some(Post::Genitive(Box::new(owner)));
        }
    } else if class & (LODGE | EATERY | SHOP | DESK | BANK) != 0 && dice.chance(22) {
        let mut place = place(dice, STOP | WATER | STREET, 40);
        if matches!(place.phrase.det, Det::Def | Det::Quantity(..) | Det::Number(_)) {
            place.phrase.det = Det::Def;
            place.phrase.plural = false;
        }
        phrase.post = Some(Post::Place(Box::new(place)));
    }
}

/// A place where something is; the percentage says how often it is given as being near something.
fn place(dice: &mut Dice, class: Class, beside: usize) -> Prepositional {
    let open = class & (VEHICLE | SEAT | DESK | BANK | CORNER) == 0;
    if open && dice.chance(16) {
        return Prepositional { german: "in", case: Case::Dat, english: "in", phrase: city(dice) };
    }
    let mut phrase = noun_phrase(dice, class, if class == PLACE { CORNER | DESK } else { 0 }, Role::Place);
    phrase.post = None;
    let named = matches!(phrase.det, Det::Bare);
    if open && !named && dice.chance(beside) {
        let &(german, case, english) = dice.pick(BESIDE);
        return Prepositional { german, case, english, phrase };
    }
    let (german, english) = match phrase.head {
        Head::Noun(noun, _) if !noun.there.is_empty() => (noun.there, noun.english_there),
        _ => ("bei", "at"),
    };
    Prepositional { german, case: Case::Dat, english, phrase }
}

fn city(dice: &mut Dice) -> Phrase {
    let (german, english) = dice.word(CITIES);
    simple(dice, Head::Name(german.to_string(), english.to_string(), ES))
}

/// A place where somebody goes.
fn direction(dice: &mut Dice, verb: &Verb) -> Prepositional {
    let near = matches!(verb.form(0), "gehen" | "tragen" | "führen");
    if !near && dice.chance(40) {
        return Prepositional { german: "nach", case: Case::Dat, english: "to", phrase: city(dice) };
    }
    let mut phrase = noun_phrase(dice, PLACE, CORNER | DESK, Role::Place);
    phrase.post = None;
    let there = if let Head::Noun(noun, _) = phrase.head { noun.there } else { "" };
    let within = dice.chance(55);
    let (german, case) = match there {
        "in" if within => ("in", Case::Acc),
        "auf" if within => ("auf", Case::Acc),
        _ => ("zu", Case::Dat),
    };
    Prepositional { german, case, english: "to", phrase }
}

/// A person: pronoun, name or noun.
fn person(dice: &mut Dice, class: Class, role: Role) -> Phrase {
    let noun = class & (KIN | STAFF) != 0 && class & PERSON == 0;
    let kind = if noun { 9 } else { dice.roll(10) };
    match (kind, role) {
        (0..4, Role::Subject) => {
            let index = dice.weighted(&[26, 24, 14, 14, 10, 4, 2, 0, 8]);
            pronoun_phrase(dice, index)
        }
        (0..2, _) => {
            let index = dice.weighted(&[30, 20, 16, 16, 12, 6]);
            pronoun_phrase(dice, index)
        }
        (4..6, _) => name(dice),
        _ => {
            let mut phrase = noun_phrase(dice, class, 0, role);
            if role == Role::Subject
                && !matches!(phrase.det, Det::Each)
                && phrase.post.is_none()
                && dice.chance(9)
            {
                phrase.and = Some(Box::new(if dice.chance(50) {
                    name(dice)
                } else {
                    noun_phrase(dice, KIN, 0, role)
                }));
            }
            phrase
        }
    }
}

fn name(dice: &mut Dice) -> Phrase {
    let woman = dice.chance(50);
    let pronoun = if woman { SHE } else { HE };
    let head = if dice.chance(30) {
        let family = dice.word(FAMILIES).0;
        let (german, english) = if woman { ("frau", "mrs") } else { ("herr", "mr") };
        Head::Name(format!("{german}_1 {family}"), format!("{english}_1 {family}"), pronoun)
    } else {
        let first = dice.word(if woman { WOMEN } else { MEN }).0;
        Head::Name(first.to_string(), first.to_string(), pronoun)
    };
    simple(dice, head)
}

fn class_of(phrase: &Phrase) -> Class {
    match phrase.head {
        Head::Noun(noun, _) => noun.class,
        Head::Pronoun(9..12) | Head::Name(_, _, ES) | Head::Relative(..) => 0,
        Head::Name(..) | Head::Pronoun(_) => PERSON,
    }
}

/// The pronoun that stands for a phrase, if one is natural.
fn stand_in(phrase: &Phrase) -> Option<usize> {
    match phrase.head {
        _ if phrase.and.is_some() => Some(THEY),
        Head::Pronoun(WHO | WHAT) | Head::Relative(..) => None,
        Head::Pronoun(index) | Head::Name(_, _, index) => Some(index),
        Head::Noun(..) if phrase.plural => Some(THEY),
        Head::Noun(_, _) if matches!(phrase.det, Det::Each | Det::Kein) => None,
        Head::Noun(noun, _) if noun.class & PERSON != 0 => [Some(HE), Some(SHE), None][noun.column],
        Head::Noun(noun, _) => Some([10, 11, ES][noun.column]),
    }
}

/// A subject that takes up another one, or a new one.
fn same_or_new(dice: &mut Dice, phrase: &Phrase, class: Class) -> Phrase {
    match stand_in(phrase) {
        Some(index) if class_of(phrase) & class != 0 => pronoun_phrase(dice, index),
        _ => any_subject(dice, class),
    }
}

fn any_subject(dice: &mut Dice, class: Class) -> Phrase {
    if class & (PERSON | STAFF) == 0 || (class & !(PERSON | STAFF | KIN) != 0 && dice.chance(60)) {
        noun_phrase(dice, class & !(PERSON | STAFF), PERSON, Role::Subject)
    } else {
        let class = if class & STAFF != 0 && dice.chance(60) { STAFF } else { class };
        person(dice, class, Role::Subject)
    }
}

fn object(dice: &mut Dice, class: Class) -> Phrase {
    // Choose one of the kinds first so that large groups of nouns do not crowd out small ones.
    let kinds: Vec<Class> = (0..Class::BITS).map(|bit| 1 << bit).filter(|kind| class & kind != 0).collect();
    let index = dice.roll(kinds.len());
    let kind = kinds.get(index).copied().unwrap_or(class);
    if kind & (PERSON | KIN | STAFF) != 0 {
        return person(dice, kind, Role::Object);
    }
    let mut phrase = noun_phrase(dice, kind, 0, Role::Object);
    if kind & FOOD != 0 && dice.chance(12) && !matches!(phrase.det, Det::Some) {
        phrase.and = Some(Box::new(noun_phrase(dice, kind, 0, Role::Object)));
    }
    phrase
}

/// Tries to give a noun phrase a relative clause.
fn relate(dice: &mut Dice, phrase: &mut Phrase) {
    let Head::Noun(noun, _) = phrase.head else { return };
    let plain = matches!(
        phrase.det,
        Det::Def | Det::Indef | Det::All | Det::Number(_) | Det::None | Det::Quantity(..)
    );
    if phrase.post.is_some() || phrase.and.is_some() || !plain || noun.class & (NAMED | PRICE | SPAN) != 0 {
        return;
    }
    let column = if phrase.plural { 3 } else { noun.column };
    let mut relative = simple(dice, Head::Relative(column, noun.class & PERSON != 0));
    relative.plural = phrase.plural;
    let tense = *dice.pick(&[Tense::Past, Tense::Habit, Tense::Past]);
    let clause = match dice.roll(10) {
        0..2 if noun.class & LODGE != 0 || noun.class & EATERY != 0 => {
            let verb =
                verb_with(dice, |v| v.place.0 & noun.class != 0 && v.place.1 > 70 && v.subject & PERSON != 0);
            let mut clause = clause(dice, verb, None, tense, 0);
            clause.place =
                Some(Prepositional { german: "in", case: Case::Dat, english: "in", phrase: relative });
            clause
        }
        2..6 if noun.class & PERSON == 0 => {
            let verb = verb_with(dice, |v| {
                v.object & noun.class != 0 && v.subject & PERSON != 0 && v.fixed.is_empty()
            });
            let mut clause = clause(dice, verb, None, tense, 20);
            if clause.object.is_none() {
                return;
            }
            clause.object = Some(relative);
            clause
        }
        _ => {
            let verb = verb_with(dice, |v| v.subject & noun.class != 0 && v.kind == Kind::Plain);
            if verb.subject & noun.class == 0 {
                return;
            }
            clause(dice, verb, Some(relative), tense, 30)
        }
    };
    phrase.post = Some(Post::Relative(Box::new(clause)));
}

fn verb_with(dice: &mut Dice, fits: impl Fn(&Verb) -> bool) -> &'static Verb {
    let list: Vec<&'static Verb> = VERBS.iter().filter(|verb| fits(verb)).collect();
    if list.is_empty() { &VERBS[0] } else { list[dice.skew(list.len())] }
}

/// A time of day.
fn clock(dice: &mut Dice) -> Expression {
    let hour = 1 + dice.roll(12);
    let (next, hour_name) = (entry(UNITS, hour % 12 + 1).1, entry(UNITS, hour).1);
    let german = |hour: usize| if hour == 1 { "eins" } else { entry(UNITS, hour).0 };
    match dice.roll(10) {
        0..5 => {
            let text = format!("um_1 {}_2 uhr_3", entry(UNITS, hour).0);
            dice.expression(&text, &format!("at_1 {hour_name}_2 o'clock_3"))
        }
        5..7 => {
            let text = format!("um_1 halb_2 {}_3", german(hour % 12 + 1));
            dice.expression(&text, &format!("at_1 half_2 past_2 {hour_name}_3"))
        }
        7 => {
            let text = format!("um_1 viertel_2 nach_3 {}_4", german(hour));
            dice.expression(&text, &format!("at_1 a_2 quarter_2 past_3 {hour_name}_4"))
        }
        8 => {
            let text = format!("um_1 viertel_2 vor_3 {}_4", german(hour % 12 + 1));
            dice.expression(&text, &format!("at_1 a_2 quarter_2 to_3 {next}_4"))
        }
        _ => {
            let time = format!("{}.{}{}", 1 + dice.roll(23), dice.roll(6), 5 * dice.roll(2));
            dice.expression(&format!("um_1 {time}_2 uhr_2"), &format!("at_1 {time}_2"))
        }
    }
}

/// Adverbials of time that go with a tense.
fn times(dice: &mut Dice, tense: Tense, percent: usize) -> Vec<Expression> {
    let bit = tense_bit(tense);
    let mut list = Vec::new();
    if tense == Tense::Since {
        let &(one, many, english) = dice.pick(SPANS);
        let expression = if dice.chance(25) {
            dice.expression(
                &format!("seit_1 {}_2", one.replace(' ', "_2 ")),
                &format!("for_1 a_2 {english}_2"),
            )
        } else {
            let n = number(dice, 12);
            let (german_n, english_n) = number_words(n);
            dice.expression(
                &format!("seit_1 {german_n}_2 {many}_3"),
                &format!("for_1 {english_n}_2 {english}s_3"),
            )
        };
        return vec![expression];
    }
    if tense == Tense::Before || !dice.chance(percent) {
        return list;
    }
    match dice.roll(10) {
        0 | 1 if bit & (PAST | FUTURE) != 0 => {
            let (german, english) = dice.word(WEEKDAYS);
            list.push(dice.expression(&format!("am_1 {german}_2"), &format!("on_1 {english}_2")));
        }
        2 if bit & (PAST | FUTURE) != 0 => {
            let &(_, many, english) = dice.pick(SPANS);
            let n = number(dice, 12);
            let (german_n, english_n) = number_words(n);
            list.push(if bit == PAST {
                let english = format!("{english_n}_2 {english}s_3 ago_1");
                dice.expression(&format!("vor_1 {german_n}_2 {many}_3"), &english)
            } else {
                let english = format!("in_1 {english_n}_2 {english}s_3");
                dice.expression(&format!("in_1 {german_n}_2 {many}_3"), &english)
            });
            return list;
        }
        3 if bit & (PAST | FUTURE) != 0 => {
            let (german, english) = dice.word(MONTHS);
            list.push(dice.expression(&format!("im_1 {german}_2"), &format!("in_1 {english}_2")));
            return list;
        }
        _ => {
            let fitting: Vec<_> = TIMES.iter().filter(|entry| entry.0 & bit != 0).collect();
            let &&(_, german, english) = dice.pick(&fitting);
            list.push(dice.expression(german, english));
        }
    }
    let day = list.iter().any(|e: &Expression| {
        ["heute", "gestern", "morgen", "am_", "jeden"].iter().any(|start| e.german.starts_with(start))
    });
    if day && bit != PRESENT && dice.chance(25) {
        list.push(clock(dice));
    }
    list
}

fn tense_bit(tense: Tense) -> u8 {
    match tense {
        Tense::Present => PRESENT,
        Tense::Habit => HABIT,
        Tense::Past | Tense::Before => PAST,
        Tense::Future => FUTURE,
        Tense::Since => 0,
    }
}

fn adverb(dice: &mut Dice, tense: Tense) -> Option<(Expression, char)> {
    let fitting: Vec<_> = ADVERBS.iter().filter(|entry| entry.0 & tense_bit(tense) != 0).collect();
    if fitting.is_empty() || tense == Tense::Before {
        return None;
    }
    let &&(_, german, english, position) = dice.pick(&fitting);
    Some((dice.expression(german, english), position))
}

fn any_tense(dice: &mut Dice) -> Tense {
    [Tense::Past, Tense::Present, Tense::Habit, Tense::Future][dice.weighted(&[44, 18, 18, 20])]
}

/// A clause with a verb; the richness is how often, in percent, the optional adverbials are there.
fn clause(
    dice: &mut Dice,
    verb: &'static Verb,
    subject: Option<Phrase>,
    tense: Tense,
    richness: usize,
) -> Clause {
    let subject = subject.unwrap_or_else(|| any_subject(dice, verb.subject));
    let since = ["wohnen", "arbeiten", "warten", "kennen"].contains(&verb.form(0)) && richness > 40;
    let mut tense = if since && tense == Tense::Habit { Tense::Since } else { tense };
    let lasting = verb.state && verb.subject & PERSON == 0 && verb.object == 0 && verb.fixed.is_empty();
    if verb.state && (tense == Tense::Present || lasting) && verb.kind != Kind::Like {
        tense = Tense::Habit;
    }
    if verb.kind == Kind::Link {
        let class = class_of(&subject);
        return Clause { verb, ..being(dice, subject, class, tense, richness) };
    }
    let mut c = bare_clause(dice, verb, subject, tense);
    if verb.object != 0 {
        c.object = Some(object(dice, verb.object));
    }
    if verb.dative != 0 {
        c.dative = Some(person(dice, verb.dative, Role::Object));
    }
    avoid_echo(dice, &mut c);
    if let Some((german, case, english, class)) = verb.prep {
        let mut phrase = object(dice, class);
        if matches!(phrase.head, Head::Pronoun(_)) {
            phrase = noun_phrase(dice, class, 0, Role::Place);
        }
        c.prep = Some(Prepositional { german, case, english, phrase });
    }
    let wanted = |percent: usize| if percent > 85 { percent } else { percent * (richness + 25) / 100 };
    if verb.place.0 != 0 && dice.chance(wanted(verb.place.1)) {
        let class = verb.place.0;
        let kinds: Vec<Class> =
            (0..Class::BITS).map(|bit| 1 << bit).filter(|kind| class & kind != 0).collect();
        let index = dice.roll(kinds.len());
        c.place = Some(place(dice, kinds[index], if verb.place.1 == 100 { 25 } else { 12 }));
    }
    if verb.direction != 0 && dice.chance(wanted(verb.direction)) {
        c.direction = Some(direction(dice, verb));
    }
    if verb.subject & PERSON != 0
        && verb.prep.is_none()
        && verb.dative == 0
        && !verb.english.split('/').next().is_some_and(|first| first.contains(' ') && !first.contains('+'))
        && !verb.state
        && dice.chance(richness / 5)
    {
        c.company = company(dice, verb);
    }
    let often = if verb.state && c.tense == Tense::Habit { 0 } else { richness * 7 / 10 };
    c.times = times(dice, c.tense, often);
    if dice.chance(richness / 4) && !lasting {
        c.adverb = adverb(dice, c.tense);
    }
    if verb.manner != 0 && (verb.manner == TURN || (c.company.is_none() && dice.chance(richness / 3))) {
        c.manner = manner(dice, &c);
    }
    finish(dice, c, richness)
}

fn bare_clause(dice: &mut Dice, verb: &'static Verb, subject: Phrase, tense: Tense) -> Clause {
    Clause {
        mark: dice.mark(),
        verb,
        subject,
        silent: false,
        object: None,
        dative: None,
        prep: None,
        direction: None,
        place: None,
        company: None,
        predicate: None,
        times: Vec::new(),
        adverb: None,
        manner: None,
        tense,
        narrative: dice.chance(30),
        modal: None,
        gladly: false,
        negated: false,
        passive: false,
        settled: false,
    }
}

/// Replaces objects that would be the same pronoun as the subject, and lets possessives follow the subject.
fn avoid_echo(dice: &mut Dice, c: &mut Clause) {
    let index = stand_in(&c.subject);
    for phrase in [&mut c.object, &mut c.dative].into_iter().flatten() {
        if matches!(phrase.head, Head::Pronoun(_))
            && (stand_in(phrase) == index || index >= Some(5) || dice.chance(20))
        {
            *phrase = name(dice);
        }
        if let (Det::Poss(owner), Some(index)) = (&mut phrase.det, index)
            && (index < 8)
            && dice.chance(65)
        {
            *owner = index;
        }
    }
    if let (Some(object), Some(dative)) = (&mut c.object, &c.dative)
        && matches!(object.head, Head::Pronoun(_))
        && matches!(dative.head, Head::Pronoun(_))
    {
        *object = name(dice);
    }
}

/// Somebody or some vehicle somebody goes with.
fn company(dice: &mut Dice, verb: &Verb) -> Option<Prepositional> {
    if verb.direction > 50 && verb.form(0) == "fahren" && dice.chance(65) {
        let noun = noun_with(dice, VEHICLE | RIDE | AIR, 0);
        let mut phrase = simple(dice, Head::Noun(noun, None));
        phrase.det = Det::Bare;
        return Some(Prepositional { german: "mit", case: Case::Dat, english: "by", phrase });
    }
    let mut phrase = person(dice, PERSON, Role::Object);
    phrase.post = None;
    let odd = matches!(phrase.head, Head::Pronoun(_));
    (!odd).then_some(Prepositional { german: "mit", case: Case::Dat, english: "with", phrase })
}

fn manner(dice: &mut Dice, c: &Clause) -> Option<Expression> {
    let many =
        agreement(&c.subject) == Agreement::Many && !matches!(c.subject.head, Head::Pronoun(5 | 7 | 8));
    let fits = |entry: &&(u8, &str, &str)| {
        let odd = if many { "allein" } else { "zusammen" };
        entry.0 & c.verb.manner != 0 && entry.1 != odd
    };
    let fitting: Vec<_> = MANNERS.iter().filter(fits).collect();
    if fitting.is_empty() {
        return None;
    }
    let &&(_, german, english) = dice.pick(&fitting);
    Some(dice.expression(german, english))
}

/// Draws negation, modals and the like.
fn finish(dice: &mut Dice, mut c: Clause, richness: usize) -> Clause {
    let plain = matches!(c.verb.kind, Kind::Plain | Kind::Like) && c.verb.object & (PRICE | SPAN) == 0;
    let people = class_of(&c.subject) & PERSON != 0;
    if people
        && plain
        && !c.verb.state
        && matches!(c.tense, Tense::Past | Tense::Habit | Tense::Future | Tense::Present)
    {
        if dice.chance(20) {
            let modal = dice.pick(MODALS);
            c.modal = Some(modal);
            if c.tense == Tense::Past && modal.forms.starts_with("möchte") {
                c.modal = MODALS.get(1);
            }
        } else if c.tense == Tense::Habit && dice.chance(15) && c.adverb.is_none() && c.manner.is_none() {
            c.gladly = true;
        }
    }
    // How often something happens is said once, and not of wishes.
    let frequent = c.tense == Tense::Habit && (c.modal.is_some() || !c.times.is_empty());
    c.adverb = c.adverb.filter(|adverb| !frequent || adverb.0.german == "auch");
    let free =
        c.manner.is_none() && c.company.is_none() && c.adverb.as_ref().is_none_or(|adverb| adverb.1 == 'f');
    let general = matches!(c.subject.det, Det::Each | Det::All | Det::Quantity(..) | Det::Indef);
    if plain && free && !general && c.verb.fixed.is_empty() && !c.gladly && richness > 0 && dice.chance(13) {
        negate(&mut c);
    }
    c
}

/// Negates with "kein" where the object has no or an indefinite article, otherwise with "nicht".
fn negate(c: &mut Clause) {
    match &mut c.object {
        Some(object)
            if matches!(object.det, Det::Indef | Det::None) && matches!(object.head, Head::Noun(..)) =>
        {
            if object.and.is_none() && !matches!(object.post, Some(Post::Of(_))) {
                object.det = Det::Kein;
            }
        }
        Some(object) if matches!(object.det, Det::Some | Det::Number(_) | Det::Quantity(..) | Det::All) => {}
        _ => c.negated = true,
    }
}

/// Adjectives for what passes.
const MOODS: &[&str] = &["müde", "krank", "hungrig", "nervös", "traurig", "glücklich", "ungeduldig"];

/// A clause that says how something is.
fn being(dice: &mut Dice, mut subject: Phrase, class: Class, tense: Tense, richness: usize) -> Clause {
    let tense = if tense == Tense::Present { Tense::Habit } else { tense };
    subject.adjectives.retain(|adjective| adjective.more == "!");
    let mut c = bare_clause(dice, &BE, subject, tense);
    let Some(adjective) = adjective(dice, class, true) else {
        return clause(dice, &VERBS[0], None, tense, richness);
    };
    let mut predicate = Predicate { mark: dice.mark(), degree: None, adjective, than: None };
    c.negated = dice.chance(12);
    if !adjective.english_more.is_empty() && class & WEATHER == 0 && !c.negated && dice.chance(30) {
        predicate.than = Some(if class & PERSON != 0 {
            name(dice)
        } else {
            let other = noun_phrase(dice, class & !(NAMED | DEVICE), KIN, Role::Place);
            Phrase { post: None, ..other }
        });
    } else if !adjective.predicate && adjective.more != "=" && dice.chance(40) {
        predicate.degree = Some(if c.negated { DEGREES[0] } else { *dice.pick(DEGREES) });
    }
    // What lasts is not said of a day.
    let passing = adjective.predicate || class & WEATHER != 0 || MOODS.contains(&adjective.german);
    if passing && predicate.than.is_none() && tense != Tense::Habit {
        c.times = times(dice, tense, richness * 7 / 10);
    } else if !passing && tense == Tense::Future {
        c.tense = Tense::Habit;
    }
    c.predicate = Some(predicate);
    c
}

/// A clause about the weather.
fn weather(dice: &mut Dice, tense: Tense) -> Clause {
    let mut c = match dice.roll(10) {
        0..5 => {
            let subject = pronoun_phrase(dice, ES);
            let verb = dice.pick(WEATHERS);
            bare_clause(dice, verb, subject, tense)
        }
        5..7 => {
            let noun = noun_with(dice, SKY, 0);
            let mut subject = simple(dice, Head::Noun(noun, None));
            subject.det = Det::Def;
            bare_clause(dice, &SHINE, subject, tense)
        }
        _ => {
            let subject = pronoun_phrase(dice, ES);
            let mut c =
                bare_clause(dice, &BE, subject, if tense == Tense::Present { Tense::Habit } else { tense });
            if let Some(adjective) = adjective(dice, WEATHER, true) {
                let degree = dice.chance(45).then(|| *dice.pick(DEGREES));
                c.predicate = Some(Predicate { mark: dice.mark(), degree, adjective, than: None });
            }
            c
        }
    };
    if dice.chance(35) {
        c.place = Some(Prepositional { german: "in", case: Case::Dat, english: "in", phrase: city(dice) });
    }
    c
}

/// A passive clause.
fn passive(dice: &mut Dice, tense: Tense) -> Clause {
    let fits = |verb: &Verb| {
        verb.object & !(PRICE | SPAN | PERSON) != 0
            && verb.dative == 0
            && !verb
                .english
                .split('/')
                .next()
                .is_some_and(|first| first.contains(' ') && !first.contains('+'))
            && verb.reflexive.is_none()
            && !verb.state
    };
    let verb = verb_with(dice, fits);
    let subject = noun_phrase(dice, verb.object & !PERSON, PERSON, Role::Subject);
    let tense = if tense == Tense::Past { tense } else { Tense::Habit };
    let mut c = bare_clause(dice, verb, subject, tense);
    c.passive = true;
    c.narrative = true;
    c.times = times(dice, tense, 80);
    if dice.chance(35) {
        let by = if dice.chance(50) { STAFF } else { KIN };
        let phrase = Phrase { post: None, ..noun_phrase(dice, by, 0, Role::Place) };
        c.prep = Some(Prepositional { german: "von", case: Case::Dat, english: "by", phrase });
    } else if verb.place.0 != 0 && dice.chance(60) {
        c.place = Some(place(dice, verb.place.0, 10));
    }
    if c.prep.is_none() && dice.chance(35) {
        let which = 1 + dice.roll(2);
        c.modal = MODALS.get(which);
    }
    c
}

/// Any clause with the given tense.
fn any_clause(dice: &mut Dice, tense: Tense, richness: usize) -> Clause {
    match dice.roll(100) {
        0..74 => {
            let verb = dice.pick(VERBS);
            let mut c = clause(dice, verb, None, tense, richness);
            let related = richness > 70 && dice.chance(17);
            if related && verb.kind == Kind::Plain {
                match &mut c.object {
                    Some(object) if verb.dative == 0 && dice.chance(65) => {
                        relate(dice, object);
                        if matches!(object.post, Some(Post::Relative(_))) {
                            c.place = None;
                            c.company = None;
                            c.direction = None;
                            c.manner = None;
                        }
                    }
                    _ => relate(dice, &mut c.subject),
                }
            }
            c
        }
        74..84 => {
            let kinds = [
                SIGHT, PERSON, LODGE, VEHICLE, EVENT, FOOD, ROOM, EATERY, TICKET, CLOTH, LUGGAGE, DEVICE,
                READ,
            ];
            let kind = *dice.pick(&kinds);
            let mut subject = any_subject(dice, kind);
            if richness > 70 && dice.chance(30) {
                relate(dice, &mut subject);
            }
            {
                let class = class_of(&subject);
                being(dice, subject, class, tense, richness)
            }
        }
        84..90 => {
            let tense = if tense == Tense::Present { Tense::Habit } else { tense };
            let subject = pronoun_phrase(dice, ES);
            let mut c = clause(dice, &EXIST, Some(subject), tense, richness);
            if let Some(object) = &mut c.object {
                if class_of(object) & EVENT == 0 {
                    c.times.clear();
                    c.tense = if tense == Tense::Past { tense } else { Tense::Habit };
                }
                object.post = None;
                object.det = match object.det {
                    Det::Number(_) | Det::Quantity(..) | Det::None => object.det.clone(),
                    _ if object.plural => Det::None,
                    _ if dice.chance(15) => Det::Kein,
                    _ => Det::Indef,
                };
                object.adjectives.retain(|adjective| adjective.more != "!");
                if richness > 70 && dice.chance(25) {
                    relate(dice, object);
                }
            }
            c
        }
        90..94 => {
            let mut c = weather(dice, tense);
            c.times = times(dice, c.tense, richness);
            c
        }
        _ => passive(dice, tense),
    }
}

/// A clause that gives a reason or a circumstance for what a subject does.
fn reason(dice: &mut Dice, subject: &Phrase, tense: Tense) -> Clause {
    let class = class_of(subject);
    match dice.roll(100) {
        0..18 => weather(dice, tense),
        18..42 => match stand_in(subject) {
            Some(index) if class != 0 => {
                let subject = pronoun_phrase(dice, index);
                being(dice, subject, class, tense, 0)
            }
            _ => {
                let subject = person(dice, PERSON, Role::Subject);
                being(dice, subject, PERSON, tense, 0)
            }
        },
        42..55 => {
            let verb =
                verb_with(dice, |verb| !verb.fixed.is_empty() && verb.subject & (class | VEHICLE) != 0);
            let subject = same_or_new(dice, subject, verb.subject);
            clause(dice, verb, Some(subject), tense, 0)
        }
        55..90 => {
            let verb = verb_with(dice, |verb| verb.subject & (PERSON | VEHICLE) != 0);
            let subject = same_or_new(dice, subject, verb.subject);
            clause(dice, verb, Some(subject), tense, 40)
        }
        _ => any_clause(dice, tense, 40),
    }
}

/// An infinitive whose subject is that of another clause.
fn infinitive(dice: &mut Dice, subject: &Phrase) -> Clause {
    let verb = verb_with(dice, |verb| verb.subject & PERSON != 0 && !verb.state && verb.kind == Kind::Plain);
    let subject = pronoun_phrase(dice, stand_in(subject).unwrap_or(HE));
    let mut c = clause(dice, verb, Some(subject), Tense::Habit, 50);
    c.times.clear();
    c.silent = true;
    plain(&mut c);
    c
}

/// Takes away what only main clauses should have.
fn plain(c: &mut Clause) {
    c.modal = None;
    c.negated = false;
    c.gladly = false;
    c.adverb = None;
    if c.tense == Tense::Since {
        c.tense = Tense::Habit;
        c.times.clear();
    }
    if let Some(object) = &mut c.object
        && matches!(object.det, Det::Kein)
    {
        object.det = Det::Def;
    }
}

fn join(dice: &mut Dice, conjunction: &'static Conjunction, clause: Clause, front: bool) -> Joined {
    Joined { mark: dice.mark(), conjunction, clause, front }
}

/// Draws a whole sentence.
fn draw(dice: &mut Dice) -> Sentence {
    let mark = dice.mark();
    let statement = |main, joined| Sentence { mark, mood: Mood::Statement, main, joined };
    match dice.roll(100) {
        0..29 => {
            let tense = any_tense(dice);
            statement(any_clause(dice, tense, 100), None)
        }
        29..51 => {
            let (main, joined) = adverbial(dice);
            statement(main, Some(joined))
        }
        51..60 => {
            let (main, joined) = speech(dice);
            statement(main, Some(joined))
        }
        60..67 => {
            let verb =
                verb_with(dice, |verb| verb.subject & PERSON != 0 && !verb.state && verb.place.1 < 100);
            let subject = person(dice, PERSON, Role::Subject);
            let tense = any_tense(dice);
            let main = clause(dice, verb, Some(subject), tense, 50);
            let sub = infinitive(dice, &main.subject);
            let conjunction = if dice.chance(80) { &IN_ORDER } else { &WITHOUT };
            statement(main, Some(join(dice, conjunction, sub, false)))
        }
        67..76 => {
            let (main, joined) = coordination(dice);
            statement(main, Some(joined))
        }
        76..95 => question(dice, mark),
        _ => {
            let fits = |verb: &Verb| {
                verb.subject & PERSON != 0
                    && !verb.state
                    && verb.kind == Kind::Plain
                    && verb.form(0) != "wohnen"
            };
            let verb = verb_with(dice, fits);
            let subject = pronoun_phrase(dice, POLITE);
            let mut main = clause(dice, verb, Some(subject), Tense::Habit, 70);
            plain(&mut main);
            main.times = times(dice, Tense::Future, 30);
            if dice.chance(75) {
                main.adverb = Some((dice.expression("bitte", "please"), 'f'));
            }
            Sentence { mark, mood: Mood::Command, main, joined: None }
        }
    }
}

/// A main clause with a verb-final adverbial clause.
fn adverbial(dice: &mut Dice) -> (Clause, Joined) {
    let kind = dice.weighted(&[36, 10, 13, 7, 14, 5, 6, 7]);
    let conjunction = [&BECAUSE, &ALTHOUGH, &IF, &WHENEVER, &WHEN, &BEFORE, &AFTER, &WHILE][kind];
    let free = any_tense(dice);
    let (tense, sub_tense) = match kind {
        0 | 1 => (free, if free == Tense::Future { Tense::Present } else { free }),
        2 => (Tense::Future, Tense::Habit),
        3 => (Tense::Habit, Tense::Habit),
        6 => (Tense::Past, Tense::Before),
        _ => (Tense::Past, Tense::Past),
    };
    let mut main = any_clause(dice, tense, 50);
    let mut sub = if kind < 4 {
        reason(dice, &main.subject, sub_tense)
    } else {
        let verb = verb_with(dice, |verb| !verb.state && verb.kind == Kind::Plain);
        let subject = same_or_new(dice, &main.subject, verb.subject);
        clause(dice, verb, Some(subject), sub_tense, 30)
    };
    if main.verb.kind == Kind::Link && sub.verb.kind == Kind::Link {
        sub = weather(dice, sub_tense);
    }
    if kind >= 2 {
        plain(&mut sub);
        sub.times.clear();
        sub.narrative = true;
    }
    if sub.tense == Tense::Since && kind < 2 {
        sub.adverb = None;
    }
    sub.adverb = sub.adverb.filter(|adverb| adverb.1 == 'm');
    let front = dice.chance(35) && conjunction.german != "denn";
    // The first mention should be the full one.
    if front
        && let Head::Pronoun(index) = sub.subject.head
        && index < WHO
        && !matches!(main.subject.head, Head::Pronoun(_))
        && stand_in(&main.subject) == Some(index)
    {
        std::mem::swap(&mut main.subject, &mut sub.subject);
    }
    main.settled = true;
    let joined = join(dice, conjunction, sub, front);
    (main, joined)
}

/// Somebody says that, or tries to.
fn speech(dice: &mut Dice) -> (Clause, Joined) {
    let verb = dice.pick(SPEECH);
    let tense = if dice.chance(55) { Tense::Past } else { Tense::Habit };
    let subject = person(dice, PERSON, Role::Subject);
    let mut main = clause(dice, verb, Some(subject), tense, 0);
    main.times = times(dice, tense, if verb.kind == Kind::Try { 40 } else { 0 });
    if verb.kind == Kind::Try {
        let sub = infinitive(dice, &main.subject);
        return (main, join(dice, &BARE, sub, false));
    }
    let inner = if tense == Tense::Past { Tense::Past } else { any_tense(dice) };
    let mut sub = any_clause(dice, inner, 50);
    sub.adverb = sub.adverb.filter(|adverb| adverb.1 == 'm');
    (main, join(dice, &THAT, sub, false))
}

/// Two main clauses.
fn coordination(dice: &mut Dice) -> (Clause, Joined) {
    let tense = any_tense(dice);
    let conjunction = dice.pick(COORDINATE);
    let mut main = any_clause(dice, tense, 45);
    main.settled = true;
    let people = class_of(&main.subject) & PERSON != 0 && main.verb.kind == Kind::Plain && !main.passive;
    let mut second = if people && (conjunction.german == "und" || dice.chance(50)) {
        let verb = verb_with(dice, |verb| verb.subject & PERSON != 0 && verb.kind == Kind::Plain);
        let subject = same_or_new(dice, &main.subject, PERSON);
        clause(dice, verb, Some(subject), tense, 30)
    } else if conjunction.join == Join::Inverted {
        let verb = verb_with(dice, |verb| verb.subject & PERSON != 0 && verb.kind == Kind::Plain);
        clause(dice, verb, None, tense, 30)
    } else {
        reason(dice, &main.subject, tense)
    };
    if let Some((_, 'f')) = second.adverb {
        second.adverb = None;
    }
    if !main.times.is_empty() {
        second.times.clear();
    }
    second.settled = true;
    let same = match second.subject.head {
        Head::Pronoun(index) => stand_in(&main.subject) == Some(index),
        _ => false,
    };
    if same && people && conjunction.german == "und" && second.times.is_empty() {
        second.silent = true;
    }
    let joined = join(dice, conjunction, second, false);
    (main, joined)
}

/// A direct or indirect question.
fn question(dice: &mut Dice, mark: u32) -> Sentence {
    let tense = *dice.pick(&[Tense::Past, Tense::Future, Tense::Habit]);
    let kind = dice.roll(10);
    if kind == 0 || kind == 1 {
        return which_question(dice, mark, tense);
    }
    let word = if kind < 5 || (kind > 7 && dice.chance(40)) { None } else { Some(*dice.pick(QUESTIONS)) };
    let left_out = word.map_or('-', |word| word.2);
    let verb = verb_with(dice, |verb| match left_out {
        'p' => verb.place.1 >= 50 && !verb.state,
        'd' => verb.direction >= 80 && verb.subject & PERSON != 0,
        'w' => {
            verb.subject & PERSON != 0
                && verb.prep.is_none()
                && verb.dative == 0
                && !verb
                    .english
                    .split('/')
                    .next()
                    .is_some_and(|first| first.contains(' ') && !first.contains('+'))
                && !verb.state
                && verb.kind == Kind::Plain
        }
        's' => ["wohnen", "arbeiten", "warten", "kennen"].contains(&verb.form(0)),
        't' => verb.kind == Kind::Plain && !verb.state,
        _ => verb.kind == Kind::Plain,
    });
    let tense = if left_out == 's' { Tense::Habit } else { tense };
    let subject = (verb.subject & PERSON != 0 && dice.chance(55)).then(|| {
        let index = if kind > 7 { *dice.pick(&[I, 1, HE, SHE]) } else { *dice.pick(&[POLITE, 5, 1, 6]) };
        pronoun_phrase(dice, index)
    });
    let mut main = clause(dice, verb, subject, tense, 70);
    plain_question(&mut main, left_out);
    let mood = match (word, kind) {
        (word, 8..) => {
            let &(german, english, stop) = dice.pick(OPENINGS);
            let (ask, answer, _) = word.unwrap_or(("ob", "whether/if", '-'));
            Mood::Indirect(dice.expression(german, english), dice.expression(ask, answer), stop)
        }
        (Some((german, english, _)), _) => Mood::Question(dice.expression(german, english)),
        (None, _) => Mood::YesNo,
    };
    Sentence { mark, mood, main, joined: None }
}

/// Takes out of a clause what its question word asks for.
fn plain_question(main: &mut Clause, left_out: char) {
    let modal = main.modal;
    plain(main);
    main.modal = modal;
    match left_out {
        'p' => main.place = None,
        'd' => main.direction = None,
        't' => main.times.clear(),
        'w' => main.company = None,
        's' => {
            main.times.clear();
            main.modal = None;
            main.tense = Tense::Since;
        }
        _ => {}
    }
    if left_out == 'w' || left_out == 't' {
        main.manner = main.manner.take().filter(|_| main.verb.manner == TURN);
    }
}

/// A question with "wer", "was" or "welch-".
fn which_question(dice: &mut Dice, mark: u32, tense: Tense) -> Sentence {
    let things = OBJECTS | FOOD | DRINK | VEHICLE | TICKET | SIGHT | LODGE;
    let verb = verb_with(dice, |verb| verb.object & things != 0 && verb.subject & PERSON != 0);
    let mut main = clause(dice, verb, None, tense, 70);
    plain_question(&mut main, '-');
    match dice.roll(3) {
        0 => main.subject = pronoun_phrase(dice, WHO),
        1 => main.object = Some(pronoun_phrase(dice, WHAT)),
        _ => {
            let mut object = noun_phrase(dice, verb.object & !PERSON, PERSON, Role::Object);
            object.det = Det::Which;
            object.post = None;
            object.adjectives.clear();
            main.object = Some(object);
        }
    }
    Sentence { mark, mood: Mood::Which, main, joined: None }
}

// ---------------------------------------------------------------------------------------------------------
// Tokens
// ---------------------------------------------------------------------------------------------------------

/// A word and the marks of what it expresses.
#[derive(Clone)]
struct Token {
    text: String,
    marks: Vec<u32>,
}

type Line = Vec<Token>;

/// Appends the words of a text, all with the same marks.
fn put(line: &mut Line, text: &str, marks: &[u32]) {
    for word in
        text.split(|c: char| c == '_' || c.is_whitespace()).filter(|word| !word.is_empty() && *word != "~")
    {
        line.push(Token { text: word.to_string(), marks: marks.to_vec() });
    }
}

fn line(text: &str, marks: &[u32]) -> Line {
    let mut line = Line::new();
    put(&mut line, text, marks);
    line
}

/// Appends a text in the notation of the tables.
fn put_marked(line: &mut Line, text: &str, mark: u32) {
    for word in text.split(' ') {
        let (text, digits) = word.split_once('_').unwrap_or((word, "0"));
        let marks: Vec<u32> =
            digits.chars().filter_map(|digit| digit.to_digit(10)).map(|digit| mark + digit).collect();
        put(line, text, &marks);
    }
}

/// Drops commas that end up next to other punctuation.
fn tidy(line: Line) -> Line {
    let mut out: Line = Line::new();
    for token in line {
        let closes = matches!(token.text.as_str(), "," | "." | "?");
        if closes && out.last().is_some_and(|last| last.text == ",") {
            out.pop();
        }
        out.push(token);
    }
    out
}

/// The entry of a list of "german:english" words.
fn entry(list: &'static str, index: usize) -> (&'static str, &'static str) {
    list.split_whitespace().nth(index).and_then(|word| word.split_once(':')).unwrap_or(("", ""))
}

fn number_words(n: usize) -> (String, String) {
    let (ten, unit) = (entry(TENS, (n / 10).saturating_sub(2)), entry(UNITS, n % 10));
    match n {
        0..20 => (entry(UNITS, n).0.to_string(), entry(UNITS, n).1.to_string()),
        _ if n.is_multiple_of(10) => (ten.0.to_string(), ten.1.to_string()),
        _ => (format!("{}und{}", unit.0, ten.0), format!("{}-{}", ten.1, unit.1)),
    }
}

// ---------------------------------------------------------------------------------------------------------
// German
// ---------------------------------------------------------------------------------------------------------

// Endings by case, then masculine, feminine, neuter, plural.
const DER: [[&str; 4]; 4] = [
    ["der", "die", "das", "die"],
    ["den", "die", "das", "die"],
    ["dem", "der", "dem", "den"],
    ["des", "der", "des", "der"],
];
const STRONG: [[&str; 4]; 4] =
    [["er", "e", "es", "e"], ["en", "e", "es", "e"], ["em", "er", "em", "en"], ["es", "er", "es", "er"]];
const EIN: [[&str; 4]; 4] =
    [["", "e", "", "e"], ["en", "e", "", "e"], ["em", "er", "em", "en"], ["es", "er", "es", "er"]];
const WEAK: [[&str; 4]; 4] = [["e", "e", "e", "en"], ["en", "e", "e", "en"], ["en"; 4], ["en"; 4]];
const MIXED: [[&str; 4]; 4] = [["er", "e", "es", "en"], ["en", "e", "es", "en"], ["en"; 4], ["en"; 4]];

fn index(case: Case) -> usize {
    match case {
        Case::Nom => 0,
        Case::Acc => 1,
        Case::Dat => 2,
        Case::Gen => 3,
    }
}

/// The German form of a noun.
fn decline(noun: &Noun, case: Case, plural: bool) -> String {
    if plural {
        let bare =
            case != Case::Dat || noun.plural.ends_with(['n', 's']) || noun.class & (PRICE | MEASURE) != 0;
        return format!("{}{}", noun.plural, if bare { "" } else { "n" });
    }
    if noun.weak && case != Case::Nom {
        return noun.plural.to_string();
    }
    let genitive = case == Case::Gen && noun.column != 1;
    format!("{}{}", noun.german, if genitive { genitive_ending(noun.german) } else { "" })
}

fn genitive_ending(word: &str) -> &'static str {
    let vowels = "aeiouäöüy";
    let groups = word.split(|c: char| !vowels.contains(c)).filter(|group| !group.is_empty()).count();
    let hiss = word.ends_with(['s', 'ß', 'z', 'x']);
    let short = groups < 2
        && !word.ends_with(|c: char| vowels.contains(c))
        && !["chef", "koch", "park"].contains(&word);
    if hiss || short { "es" } else { "s" }
}

/// The determiner and the endings that adjectives take after it.
fn german_determiner(det: &Det, case: Case, column: usize) -> (String, [[&'static str; 4]; 4]) {
    let k = index(case);
    match det {
        Det::None | Det::Any => (String::new(), STRONG),
        Det::Def | Det::Bare => (DER[k][column].to_string(), WEAK),
        Det::Indef => (format!("ein{}", EIN[k][column]), MIXED),
        Det::Kein => (format!("kein{}", EIN[k][column]), MIXED),
        Det::Poss(owner) => {
            let ending = EIN[k][column];
            let stem = PRONOUNS[*owner].german[3];
            let stem = if stem == "euer" && !ending.is_empty() { "eur" } else { stem };
            (format!("{stem}{ending}"), MIXED)
        }
        Det::This => (format!("dies{}", STRONG[k][column]), WEAK),
        Det::Each => (format!("jed{}", STRONG[k][column]), WEAK),
        Det::All => (format!("all{}", STRONG[k][column]), WEAK),
        Det::Which => (format!("welch{}", STRONG[k][column]), WEAK),
        Det::Some => ("etwas".to_string(), STRONG),
        Det::Number(n) => (number_words(*n).0, STRONG),
        Det::Quantity(stem, _) => (format!("{stem}{}", STRONG[k][column]), STRONG),
        Det::Name(name) => (format!("{name}s"), STRONG),
    }
}

fn german_adjective(adjective: &str, ending: &str) -> String {
    let stem = match adjective {
        "teuer" => "teur",
        "dunkel" => "dunkl",
        "hoch" => "hoh",
        _ => adjective.strip_suffix('e').unwrap_or(adjective),
    };
    format!("{stem}{ending}")
}

/// A noun phrase without its relative clause.
fn german_phrase(phrase: &Phrase, case: Case) -> Line {
    let mut out = Line::new();
    let mark = phrase.mark;
    match &phrase.head {
        Head::Pronoun(row) => put(&mut out, PRONOUNS[*row].german[index(case).min(2)], &[mark + M_NOUN]),
        Head::Name(german, _, _) => {
            let oblique = if case == Case::Nom { german.clone() } else { german.replace("herr_", "herrn_") };
            put_marked(&mut out, &oblique, mark);
        }
        Head::Relative(3, _) if case == Case::Dat => put(&mut out, "denen", &[mark]),
        Head::Relative(column, _) => put(&mut out, DER[index(case)][*column], &[mark]),
        Head::Noun(noun, part) => {
            let column = if phrase.plural { 3 } else { noun.column };
            let (det, endings) = german_determiner(&phrase.det, case, column);
            put(&mut out, &det, &[mark + M_DET]);
            for (n, adjective) in (0..).zip(&phrase.adjectives) {
                let text = german_adjective(adjective.german, endings[index(case)][column]);
                put(&mut out, &text, &[mark + M_ADJECTIVE + n]);
            }
            let text = format!("{}{}", part.map_or("", |part| part.0), decline(noun, case, phrase.plural));
            put(&mut out, &text, &[mark + M_NOUN]);
        }
    }
    match &phrase.post {
        Some(Post::Genitive(owner)) => {
            let mut words = german_phrase(owner, Case::Gen);
            if let Some(first) = words.first_mut() {
                first.marks.push(owner.mark + M_PREP);
            }
            out.append(&mut words);
        }
        Some(Post::Place(place)) => out.append(&mut german_prepositional(place)),
        Some(Post::Of(what)) => out.append(&mut german_phrase(what, Case::Nom)),
        Some(Post::Relative(_)) | None => {}
    }
    if let Some(other) = &phrase.and {
        put(&mut out, "und", &[mark + M_AND]);
        out.append(&mut german_phrase(other, case));
    }
    out
}

fn german_prepositional(p: &Prepositional) -> Line {
    const CONTRACTED: &[(&str, &str, &str)] = &[
        ("an", "dem", "am"),
        ("in", "dem", "im"),
        ("zu", "dem", "zum"),
        ("zu", "der", "zur"),
        ("in", "das", "ins"),
        ("an", "das", "ans"),
        ("bei", "dem", "beim"),
        ("von", "dem", "vom"),
    ];
    let mark = p.phrase.mark + M_PREP;
    let mut out = line(p.german, &[mark]);
    let mut words = german_phrase(&p.phrase, p.case);
    let article =
        matches!(p.phrase.det, Det::Def | Det::Bare) && !matches!(p.phrase.post, Some(Post::Relative(_)));
    if article && let (Some(last), Some(first)) = (out.last_mut(), words.first()) {
        let found = CONTRACTED.iter().find(|entry| entry.0 == last.text && entry.1 == first.text);
        if let Some(entry) = found {
            last.text = entry.2.to_string();
            last.marks.extend(&first.marks);
            words.remove(0);
        }
    }
    out.append(&mut words);
    out
}

/// The relative clause of a noun phrase, between commas.
fn german_relative(dice: &mut Dice, phrase: &Phrase) -> Line {
    let Some(Post::Relative(clause)) = &phrase.post else { return Line::new() };
    let mut out = line(",", &[]);
    out.append(&mut german_clause(dice, clause, Order::Final, None));
    put(&mut out, ",", &[]);
    out
}

fn person_of(phrase: &Phrase) -> usize {
    match phrase.head {
        _ if phrase.plural || phrase.and.is_some() => 5,
        Head::Pronoun(row) => PRONOUNS[row].person,
        _ => 2,
    }
}

/// A finite form of a German verb.
fn conjugate(infinitive: &str, third: &str, preterite: &str, person: usize, past: bool) -> String {
    const IRREGULAR: &[(&str, [&str; 6])] = &[
        ("sein", ["bin", "bist", "ist", "sind", "seid", "sind"]),
        ("werden", ["werde", "wirst", "wird", "werden", "werdet", "werden"]),
        ("wissen", ["weiß", "weißt", "weiß", "wissen", "wisst", "wissen"]),
        ("halten", ["halte", "hältst", "hält", "halten", "haltet", "halten"]),
        ("laden", ["lade", "lädst", "lädt", "laden", "ladet", "laden"]),
        ("haben", ["habe", "hast", "hat", "haben", "habt", "haben"]),
    ];
    let dental = |stem: &str| stem.ends_with(['t', 'd']) || stem.ends_with("ffn") || stem.ends_with("gn");
    if past {
        let soft = preterite.ends_with('e');
        let insert = if dental(preterite) || preterite.ends_with(['s', 'ß']) { "e" } else { "" };
        return match person {
            1 => format!("{preterite}{insert}st"),
            3 | 5 => format!("{preterite}{}", if soft { "n" } else { "en" }),
            4 => format!("{preterite}{}t", if dental(preterite) { "e" } else { "" }),
            _ => preterite.to_string(),
        };
    }
    if let Some(entry) = IRREGULAR.iter().find(|entry| entry.0 == infinitive) {
        return entry.1[person].to_string();
    }
    let stem = infinitive.strip_suffix("en").or_else(|| infinitive.strip_suffix('n')).unwrap_or(infinitive);
    let bare = third.strip_suffix('t').unwrap_or(third);
    match person {
        0 if infinitive.ends_with("eln") => format!("{}le", stem.strip_suffix("el").unwrap_or(stem)),
        0 => format!("{stem}e"),
        1 => format!("{bare}{}", if bare.ends_with(['s', 'ß', 'z']) { "t" } else { "st" }),
        2 => third.to_string(),
        4 => format!("{stem}{}t", if dental(stem) { "e" } else { "" }),
        _ => infinitive.to_string(),
    }
}

fn auxiliary(infinitive: &str, person: usize, past: bool) -> String {
    let preterite = match infinitive {
        "sein" => "war",
        "werden" => "wurde",
        _ => "hatte",
    };
    conjugate(infinitive, "", preterite, person, past)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    First,
    Second,
    Final,
    Infinitive,
}

/// The finite verb and the words at the end of the clause.
fn german_verbs(dice: &mut Dice, c: &Clause, order: Order) -> (Line, Line) {
    let (verb, finite) = (c.mark + M_VERB, c.mark + M_FINITE);
    let person = person_of(&c.subject);
    let word = |index: usize| c.verb.form(index);
    let full = |form: &str| format!("{}{form}", c.verb.particle);
    let past = matches!(c.tense, Tense::Past | Tense::Before);
    let helper = if word(3) == "ist" { "sein" } else { "haben" };
    if order == Order::Infinitive {
        let mut end = Line::new();
        if c.verb.particle.is_empty() {
            put(&mut end, "zu", &[verb + M_PASSIVE]);
            put(&mut end, word(0), &[verb]);
        } else {
            put(&mut end, &format!("{}zu{}", c.verb.particle, word(0)), &[verb, verb + M_PASSIVE]);
        }
        return (Line::new(), end);
    }
    let mut end = Line::new();
    if let Some(modal) = c.modal {
        let form = if past {
            conjugate("", "", modal.past, person, true)
        } else {
            modal.forms.split(' ').nth(person).unwrap_or("").to_string()
        };
        if c.passive {
            put(&mut end, &full(word(4)), &[verb]);
            put(&mut end, "werden", &[c.mark + M_PASSIVE]);
        } else {
            put(&mut end, &full(word(0)), &[verb]);
        }
        return (line(&form, &[finite]), end);
    }
    if c.passive {
        put(&mut end, &full(word(4)), &[verb]);
        return (line(&auxiliary("werden", person, past), &[finite]), end);
    }
    // Hardly anybody says "du fandest".
    let spoken = matches!(person, 1 | 4) && c.verb.kind != Kind::Link;
    let preterite = (c.narrative && !spoken)
        || matches!(word(0), "sein" | "haben" | "wissen")
        || c.verb.kind == Kind::Exist;
    if c.tense == Tense::Before || (past && !preterite) {
        put(&mut end, &full(word(4)), &[verb]);
        return (line(&auxiliary(helper, person, c.tense == Tense::Before), &[finite]), end);
    }
    if c.tense == Tense::Future && (c.times.is_empty() || dice.chance(35)) {
        put(&mut end, &full(word(0)), &[verb]);
        return (line(&auxiliary("werden", person, false), &[finite]), end);
    }
    let form = conjugate(word(0), word(1), word(2), person, past);
    if order == Order::Final {
        return (line(&full(&form), &[verb, finite]), end);
    }
    put(&mut end, c.verb.particle, &[verb]);
    (line(&form, &[verb, finite]), end)
}

/// A part of a clause with its place in the German order and its weight for coming first.
struct Part {
    slot: u32,
    weight: usize,
    words: Line,
}

fn part(slot: u32, weight: usize, words: Line) -> Part {
    Part { slot, weight, words }
}

/// The parts of a clause apart from the verbs, and the relative clause that comes after everything.
fn german_parts(dice: &mut Dice, c: &Clause) -> (Vec<Part>, Line) {
    let mut parts = Vec::new();
    let mut late = Line::new();
    if !c.silent {
        let mut words = german_phrase(&c.subject, Case::Nom);
        words.append(&mut german_relative(dice, &c.subject));
        let relative = matches!(c.subject.head, Head::Relative(..) | Head::Pronoun(WHO));
        parts.push(part(if relative { 0 } else { 5 }, 60, words));
    }
    if let Some(case) = c.verb.reflexive {
        let row = match person_of(&c.subject) {
            0 if case == Case::Dat => "mir",
            0 => "mich",
            1 if case == Case::Dat => "dir",
            1 => "dich",
            3 => "uns",
            4 => "euch",
            _ => "sich",
        };
        parts.push(part(10, 0, line(row, &[c.mark + M_VERB])));
    }
    if let Some(object) = &c.object {
        let definite = !matches!(
            object.det,
            Det::Indef | Det::None | Det::Kein | Det::Some | Det::Number(_) | Det::Quantity(..)
        );
        let words = german_phrase(object, Case::Acc);
        let mut slot = match object.head {
            Head::Relative(..) | Head::Pronoun(WHAT) => 0,
            Head::Pronoun(_) => 12,
            Head::Name(..) if c.dative.is_none() => 18,
            _ if matches!(object.det, Det::Which) => 0,
            _ if definite && c.dative.is_none() && dice.chance(45) => 18,
            _ if definite => 45,
            _ => 60,
        };
        let heavy = matches!(object.post, Some(Post::Relative(_)));
        if heavy {
            slot = slot.max(60);
        }
        late.append(&mut german_relative(dice, object));
        // Only a masculine accusative is sure to be told from the subject.
        let clear = matches!(object.head, Head::Noun(noun, _) if noun.column == 0 && !object.plural);
        parts.push(part(slot, if definite && clear && !heavy { 8 } else { 0 }, words));
    }
    if let Some(dative) = &c.dative {
        let pronoun = matches!(dative.head, Head::Pronoun(_));
        let weight = match dative.head {
            Head::Name(..) => 0,
            _ if c.verb.kind == Kind::Like => 30,
            _ => 3,
        };
        parts.push(part(if pronoun { 14 } else { 35 }, weight, german_phrase(dative, Case::Dat)));
    }
    german_adverbials(dice, c, &mut parts);
    (parts, late)
}

fn german_adverbials(dice: &mut Dice, c: &Clause, parts: &mut Vec<Part>) {
    if let Some((adverb, position)) = &c.adverb {
        let mut words = Line::new();
        put_marked(&mut words, &adverb.german, adverb.mark);
        let fixed = matches!(adverb.german.as_str(), "auch" | "nie" | "schon" | "immer");
        let weight = if *position == 'f' { 45 } else { 6 };
        parts.push(part(if *position == 'f' { 20 } else { 30 }, if fixed { 0 } else { weight }, words));
    }
    let mut words = Line::new();
    for time in &c.times {
        put_marked(&mut words, &time.german, time.mark);
    }
    parts.push(part(25, 40, words));
    let fixed_place = c.verb.place.1 == 100;
    if let Some(place) = &c.place {
        let slot = match place.phrase.head {
            Head::Relative(..) => 0,
            _ if fixed_place && c.verb.kind != Kind::Exist => 72,
            _ => 50,
        };
        let weight = if c.verb.kind == Kind::Exist { 70 } else { 14 };
        parts.push(part(slot, weight, german_prepositional(place)));
    }
    if let Some(company) = &c.company {
        parts.push(part(40, 3, german_prepositional(company)));
    }
    if c.negated {
        parts.push(part(65, 0, line("nicht", &[c.mark + M_NOT])));
    }
    if c.gladly {
        let word = if dice.chance(70) { "gern" } else { "gerne" };
        parts.push(part(28, 0, line(word, &[c.mark + M_GLADLY])));
    }
    if let Some(manner) = &c.manner {
        let mut words = Line::new();
        put_marked(&mut words, &manner.german, manner.mark);
        parts.push(part(if c.verb.manner == TURN { 78 } else { 68 }, 0, words));
    }
    if let Some(prep) = &c.prep {
        parts.push(part(70, 4, german_prepositional(prep)));
    }
    if let Some(direction) = &c.direction {
        parts.push(part(74, 4, german_prepositional(direction)));
    }
    parts.push(part(80, 0, line(c.verb.fixed, &[c.mark + M_VERB])));
    if let Some(predicate) = &c.predicate {
        parts.push(part(81, 0, german_predicate(predicate)));
    }
    parts.retain(|part| !part.words.is_empty());
}

fn german_predicate(p: &Predicate) -> Line {
    let mut out = Line::new();
    if let Some((german, _)) = p.degree {
        put(&mut out, german, &[p.mark + 1]);
    }
    if let Some(than) = &p.than {
        put(&mut out, p.adjective.more, &[p.mark]);
        put(&mut out, "als", &[p.mark + 2]);
        out.append(&mut german_phrase(than, Case::Nom));
    } else {
        put(&mut out, p.adjective.german, &[p.mark]);
    }
    out
}

/// A clause in the given order; the lead comes before the verb of a verb-second clause.
fn german_clause(dice: &mut Dice, c: &Clause, order: Order, lead: Option<Line>) -> Line {
    let (mut finite, mut end) = german_verbs(dice, c, order);
    let (mut parts, mut late) = german_parts(dice, c);
    parts.sort_by_key(|part| part.slot);
    let mut out = Line::new();
    if order == Order::Second {
        if let Some(mut lead) = lead {
            out.append(&mut lead);
        } else if !parts.is_empty() {
            let asked = parts[0].slot == 0;
            let weights: Vec<usize> = parts.iter().map(|part| part.weight).collect();
            let first = if asked || weights.iter().sum::<usize>() == 0 { 0 } else { dice.weighted(&weights) };
            out.append(&mut parts.remove(first).words);
        }
    }
    if matches!(order, Order::First | Order::Second) {
        out.append(&mut finite);
    }
    for part in &mut parts {
        out.append(&mut part.words);
    }
    out.append(&mut end);
    out.append(&mut finite);
    out.append(&mut late);
    out
}

fn german_joined(dice: &mut Dice, joined: &Joined) -> Line {
    let word = dice.alternative(joined.conjunction.german).to_string();
    let mut out = line(&word, &[joined.mark]);
    let c = &joined.clause;
    let mut words = match joined.conjunction.join {
        Join::Final => german_clause(dice, c, Order::Final, None),
        Join::Second if c.silent => german_clause(dice, c, Order::Second, Some(Line::new())),
        Join::Second => german_clause(dice, c, Order::Second, None),
        Join::Inverted => german_clause(dice, c, Order::Second, Some(Line::new())),
        Join::To | Join::Ing => german_clause(dice, c, Order::Infinitive, None),
    };
    out.append(&mut words);
    out
}

fn german(dice: &mut Dice, s: &Sentence) -> Line {
    let mut stop = if matches!(s.mood, Mood::Statement | Mood::Command) { "." } else { "?" };
    let mut out = match (&s.mood, &s.joined) {
        (Mood::Statement, Some(joined)) if joined.front => {
            let mut lead = german_joined(dice, joined);
            put(&mut lead, ",", &[joined.mark + M_COMMA]);
            german_clause(dice, &s.main, Order::Second, Some(lead))
        }
        (Mood::Statement | Mood::Which, _) => german_clause(dice, &s.main, Order::Second, None),
        (Mood::YesNo | Mood::Command, _) => german_clause(dice, &s.main, Order::First, None),
        (Mood::Question(word), _) => {
            let mut lead = Line::new();
            put_marked(&mut lead, &word.german, word.mark);
            german_clause(dice, &s.main, Order::Second, Some(lead))
        }
        (Mood::Indirect(opening, word, mark), _) => {
            stop = mark;
            let mut words = Line::new();
            put_marked(&mut words, &opening.german, opening.mark);
            put(&mut words, ",", &[]);
            put_marked(&mut words, &word.german, word.mark);
            words.append(&mut german_clause(dice, &s.main, Order::Final, None));
            words
        }
    };
    if let Some(joined) = &s.joined
        && !joined.front
    {
        if joined.conjunction.german != "und" {
            put(&mut out, ",", &[joined.mark + M_COMMA]);
        }
        out.append(&mut german_joined(dice, joined));
    }
    put(&mut out, stop, &[s.mark + M_STOP]);
    tidy(out)
}

// ---------------------------------------------------------------------------------------------------------
// English
// ---------------------------------------------------------------------------------------------------------

fn is_vowel(c: char) -> bool {
    "aeiou".contains(c)
}

fn plural_of(word: &str) -> String {
    match word {
        "child" => return "children".to_string(),
        "person" => return "people".to_string(),
        "thief" => return "thieves".to_string(),
        "knife" => return "knives".to_string(),
        "potato" | "tomato" => return format!("{word}es"),
        _ => {}
    }
    if let Some(stem) = word.strip_suffix("man") {
        return format!("{stem}men");
    }
    with_s(word)
}

/// Adds the -s of plurals and of the third person.
fn with_s(word: &str) -> String {
    let before = word.chars().rev().nth(1);
    if let Some(stem) = word.strip_suffix('y')
        && !before.is_some_and(is_vowel)
    {
        return format!("{stem}ies");
    }
    let hiss = word.ends_with(['s', 'x', 'z']) || word.ends_with("ch") || word.ends_with("sh");
    format!("{word}{}", if hiss || word == "go" || word == "do" { "es" } else { "s" })
}

/// The word with its last consonant doubled where -ed and -ing ask for it.
fn doubled(word: &str) -> String {
    let letters: Vec<char> = word.chars().rev().take(3).collect();
    let vowels = word.split(|c: char| !is_vowel(c)).filter(|group| !group.is_empty()).count();
    match letters[..] {
        [last, middle, first]
            if vowels == 1
                && !is_vowel(last)
                && !"wxy".contains(last)
                && is_vowel(middle)
                && !is_vowel(first) =>
        {
            format!("{word}{last}")
        }
        _ => word.to_string(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Base,
    Past,
    Participle,
    Ing,
}

/// A form of an English verb given as base or "base,past,participle".
fn inflect(forms: &str, form: Form) -> String {
    let mut parts = forms.split(',');
    let base = parts.next().unwrap_or("");
    let listed = match form {
        Form::Base => Some(base),
        Form::Past => parts.next(),
        Form::Participle => parts.nth(1),
        Form::Ing => None,
    };
    if let Some(word) = listed {
        return word.to_string();
    }
    let silent = base.ends_with('e') && !base.ends_with("ee") && base != "be";
    if form == Form::Ing {
        return match base {
            "travel" => "travelling".to_string(),
            "lie" => "lying".to_string(),
            _ if silent => format!("{}ing", base.strip_suffix('e').unwrap_or(base)),
            _ => format!("{}ing", doubled(base)),
        };
    }
    match base.strip_suffix('y') {
        Some(stem) if !stem.ends_with(is_vowel) => format!("{stem}ied"),
        _ if silent => format!("{base}d"),
        _ => format!("{}ed", doubled(base)),
    }
}

const INVARIABLE: &[&str] = &["can", "could", "must", "may", "should", "would", "will"];

fn english_finite(forms: &str, past: bool, agreement: Agreement) -> String {
    let base = inflect(forms, Form::Base);
    match (base.as_str(), agreement) {
        (word, _) if INVARIABLE.contains(&word) => base,
        ("be", Agreement::Many) => if past { "were" } else { "are" }.to_string(),
        ("be", _) if past => "was".to_string(),
        ("be", Agreement::I) => "am".to_string(),
        ("be", Agreement::One) => "is".to_string(),
        ("have", _) if past => "had".to_string(),
        ("have", Agreement::One) => "has".to_string(),
        ("do", _) if past => "did".to_string(),
        (_, _) if past => inflect(forms, Form::Past),
        (_, Agreement::One) => with_s(&base),
        _ => base,
    }
}

fn agreement(phrase: &Phrase) -> Agreement {
    match phrase.head {
        _ if phrase.plural || phrase.and.is_some() => Agreement::Many,
        Head::Pronoun(row) => PRONOUNS[row].agreement,
        _ => Agreement::One,
    }
}

fn article(words: &Line) -> &'static str {
    let next = words.first().map_or("", |token| token.text.as_str());
    let odd = ["uni", "eu", "one", "use"].iter().any(|start| next.starts_with(start));
    if next.starts_with("hono") || (next.starts_with(is_vowel) && !odd) { "an" } else { "a" }
}

/// A noun phrase with everything that belongs to it.
fn english_phrase(dice: &mut Dice, phrase: &Phrase, subject: bool) -> Line {
    let mark = phrase.mark;
    let mut out = match &phrase.head {
        Head::Pronoun(row) => line(PRONOUNS[*row].english[usize::from(!subject)], &[mark]),
        Head::Name(_, english, _) => {
            let mut words = Line::new();
            put_marked(&mut words, english, mark);
            words
        }
        Head::Relative(_, people) => {
            let words = match (people, subject) {
                (true, true) => "who/that",
                (true, false) => "that/who/~",
                (false, true) => "that/which",
                (false, false) => "that/~/which",
            };
            line(dice.alternative(words), &[mark])
        }
        Head::Noun(noun, part) => english_noun(dice, phrase, noun, part.map_or("", |part| part.1), subject),
    };
    match &phrase.post {
        Some(Post::Place(place)) => out.append(&mut english_prepositional(dice, place, false)),
        Some(Post::Of(what)) => {
            put(&mut out, "of", &[]);
            // What is measured takes no article and no "some".
            out.append(&mut english_phrase(dice, what, true));
        }
        Some(Post::Relative(clause)) => out.append(&mut english_clause(dice, clause, Shape::Sub, None)),
        Some(Post::Genitive(_)) | None => {}
    }
    if let Some(other) = &phrase.and {
        put(&mut out, "and", &[mark + M_AND]);
        out.append(&mut english_phrase(dice, other, subject));
    }
    out
}

/// The noun with determiner, adjectives and owner.
fn english_noun(dice: &mut Dice, phrase: &Phrase, noun: &Noun, part: &str, subject: bool) -> Line {
    let mark = phrase.mark;
    let mut words = Line::new();
    for (n, adjective) in (0..).zip(&phrase.adjectives) {
        put(&mut words, dice.alternative(adjective.english), &[mark + M_ADJECTIVE + n]);
    }
    put(&mut words, part, &[mark + M_NOUN]);
    let english = dice.alternative(noun.english);
    let last = english.rsplit('_').next().unwrap_or(english);
    let first = english.strip_suffix(last).unwrap_or("");
    let text = if phrase.plural { format!("{first}{}", plural_of(last)) } else { english.to_string() };
    put(&mut words, &text, &[mark + M_NOUN]);
    let det = [mark + M_DET];
    let mut out = Line::new();
    if let Some(Post::Genitive(owner)) = &phrase.post {
        let owned = [owner.mark + M_PREP];
        let mut whose = english_phrase(dice, owner, true);
        if dice.chance(65) {
            out.append(&mut whose);
            let plural = out.last().is_some_and(|token| token.text.ends_with('s'));
            put(&mut out, if plural { "'" } else { "'s" }, &owned);
        } else {
            put(&mut out, "the", &det);
            put(&mut words, "of", &owned);
            words.append(&mut whose);
        }
        out.append(&mut words);
        return out;
    }
    let mass = noun.plural.is_empty();
    match phrase.det {
        Det::None => {
            if !subject && (mass || phrase.plural) && dice.chance(20) {
                put(&mut out, "some", &[]);
            }
        }
        Det::Bare => {}
        Det::Def => put(&mut out, "the", &det),
        Det::Any if mass || phrase.plural => put(&mut out, "any", &det),
        Det::Indef | Det::Any => put(&mut out, article(&words), &det),
        Det::Kein => put(&mut out, "no", &det),
        Det::Poss(owner) => put(&mut out, PRONOUNS[owner].english[2], &det),
        Det::This => put(&mut out, if phrase.plural { "these" } else { "this" }, &det),
        Det::Each => put(&mut out, dice.alternative("every/each"), &det),
        Det::All => put(&mut out, dice.alternative("all the/all"), &det),
        Det::Which => put(&mut out, dice.alternative("which/what"), &det),
        Det::Some => put(&mut out, dice.alternative("some/a little"), &det),
        Det::Number(n) => put(&mut out, &number_words(n).1, &det),
        Det::Quantity(_, english) => put(&mut out, dice.alternative(english), &det),
        Det::Name(name) => {
            put(&mut out, name, &det);
            put(&mut out, "'s", &det);
        }
    }
    out.append(&mut words);
    out
}

fn english_prepositional(dice: &mut Dice, p: &Prepositional, swallow: bool) -> Line {
    let mark = p.phrase.mark + M_PREP;
    if let Head::Relative(..) = p.phrase.head {
        return if dice.chance(60) {
            line("where", &[mark, p.phrase.mark])
        } else {
            let mut out = line("in", &[mark]);
            put(&mut out, "which", &[p.phrase.mark]);
            out
        };
    }
    let mut out = Line::new();
    if !swallow {
        put(&mut out, dice.alternative(p.english), &[mark]);
    }
    out.append(&mut english_phrase(dice, &p.phrase, p.case == Case::Dat));
    if matches!(p.phrase.head, Head::Pronoun(_)) {
        out.pop();
        out.append(&mut english_phrase(dice, &p.phrase, false));
    }
    out
}

/// How an English clause is built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Main,
    /// A main clause after another one: nothing is fronted.
    Second,
    /// A subordinate clause: nothing is fronted, tenses are simple.
    Sub,
    Ask,
    To,
    Ing,
    Command,
}

/// The parts of an English verb.
struct Verbs {
    finite: Line,
    /// The finite verb inverts and takes "not".
    helper: bool,
    rest: Line,
    /// A particle that objects may precede.
    particle: &'static str,
    /// The preposition of the prepositional object is dropped.
    swallow: bool,
    /// The dative needs "to".
    to: bool,
}

/// How the tense is expressed.
enum Plan {
    Simple,
    Progressive,
    Perfect,
    PerfectProgressive,
    /// A modal or the like in its base form.
    Words(&'static str),
}

fn plan(dice: &mut Dice, c: &Clause, shape: Shape, negated: bool, timed: bool) -> Plan {
    if let Some(modal) = c.modal {
        let past = matches!(c.tense, Tense::Past | Tense::Before);
        let words = if past {
            modal.english_past
        } else if negated {
            modal.english_not
        } else {
            modal.english
        };
        return Plan::Words(dice.alternative(words));
    }
    if c.gladly {
        return Plan::Words("like to");
    }
    let sub = shape == Shape::Sub;
    let state = c.verb.state || c.passive;
    let timetable = class_of(&c.subject) & (VEHICLE | EVENT) != 0 && timed;
    match c.tense {
        Tense::Present if !state && (timed || dice.chance(70)) => Plan::Progressive,
        Tense::Past if !sub && !c.settled && !c.narrative && !state && !timed && dice.chance(30) => {
            Plan::Perfect
        }
        Tense::Habit | Tense::Present | Tense::Past => Plan::Simple,
        Tense::Before => Plan::Perfect,
        Tense::Since if state || dice.chance(50) => Plan::Perfect,
        Tense::Since => Plan::PerfectProgressive,
        Tense::Future => match dice.roll(20) {
            0..4 => Plan::Words("be going to"),
            4..8 if timetable => Plan::Simple,
            4..10 if !state && timed => Plan::Progressive,
            _ => Plan::Words("will"),
        },
    }
}

fn english_verbs(
    dice: &mut Dice,
    c: &Clause,
    shape: Shape,
    agreement: Agreement,
    negated: bool,
    timed: bool,
) -> Verbs {
    let (verb, finite_mark) = (c.mark + M_VERB, c.mark + M_FINITE);
    let first = c.verb.english.split('/').next().unwrap_or("");
    let choice = if c.passive { first } else { dice.alternative(c.verb.english) };
    let (forms, extra) = choice.split_once(' ').unwrap_or((choice, ""));
    let mut out = Verbs {
        finite: Line::new(),
        helper: true,
        rest: Line::new(),
        particle: "",
        swallow: false,
        to: false,
    };
    let mut tail = Line::new();
    let (head, mut marks) = if c.passive {
        put(&mut tail, &inflect(forms, Form::Participle), &[verb]);
        ("be,was,been", vec![c.mark + M_PASSIVE])
    } else {
        (forms, vec![verb])
    };
    for word in extra.split(' ') {
        match word {
            "=" => {
                out.swallow = true;
                marks.extend(c.prep.iter().map(|prep| prep.phrase.mark + M_PREP));
            }
            ">" => out.to = true,
            _ if word.starts_with('+') && !c.passive => out.particle = word.strip_prefix('+').unwrap_or(""),
            _ => put(&mut tail, word.trim_start_matches('+'), &[verb]),
        }
    }
    let mut past = matches!(c.tense, Tense::Past | Tense::Before);
    match shape {
        Shape::To => {
            put(&mut out.finite, "to", &[verb + M_PASSIVE]);
            put(&mut out.rest, &inflect(head, Form::Base), &marks);
        }
        Shape::Ing => put(&mut out.rest, &inflect(head, Form::Ing), &[verb, verb + M_PASSIVE]),
        Shape::Command => {
            marks.push(finite_mark);
            put(&mut out.rest, &inflect(head, Form::Base), &marks);
        }
        _ => {
            let (forms, form) = match plan(dice, c, shape, negated, timed) {
                Plan::Simple => (head, None),
                Plan::Progressive => ("be,was,been", Some(Form::Ing)),
                Plan::Perfect => {
                    past = c.tense == Tense::Before;
                    ("have,had,had", Some(Form::Participle))
                }
                Plan::PerfectProgressive => {
                    put(&mut out.rest, "been", &[finite_mark]);
                    ("have,had,had", Some(Form::Ing))
                }
                Plan::Words(words) => {
                    let (first, others) = words.split_once(' ').unwrap_or((words, ""));
                    put(&mut out.rest, others, &[if c.gladly { c.mark + M_GLADLY } else { finite_mark }]);
                    (first, Some(Form::Base))
                }
            };
            let base = inflect(forms, Form::Base);
            let simple = form.is_none();
            out.helper = base == "be"
                || INVARIABLE.contains(&base.as_str())
                || (base == "have" && !simple && out_is_perfect(form));
            let own: Vec<u32> = match (simple, c.gladly) {
                (true, _) => marks.clone(),
                (false, true) => vec![c.mark + M_GLADLY],
                (false, false) => vec![finite_mark],
            };
            if let Some(form) = form {
                if c.gladly {
                    marks.push(finite_mark);
                }
                put(&mut out.rest, &inflect(head, form), &marks);
            }
            if !out.helper && (negated || shape == Shape::Ask) {
                out.helper = true;
                let mut rest = line(&base, &own);
                rest.append(&mut out.rest);
                out.rest = rest;
                out.finite = line(&english_finite("do", past, agreement), &[finite_mark]);
            } else {
                let mut own = own;
                if simple {
                    own.push(finite_mark);
                }
                out.finite = line(&english_finite(forms, past, agreement), &own);
            }
        }
    }
    out.rest.append(&mut tail);
    out
}

/// "have" is a helper before a participle, not in "have to".
fn out_is_perfect(form: Option<Form>) -> bool {
    matches!(form, Some(Form::Participle | Form::Ing))
}

/// A clause; the lead is a question word that comes first.
fn english_clause(dice: &mut Dice, c: &Clause, shape: Shape, lead: Option<Line>) -> Line {
    let mut c = c.clone();
    let mut negated = c.negated;
    // "kein" is either "no" or a negated verb.
    if let Some(object) = &mut c.object
        && matches!(object.det, Det::Kein)
        && !matches!(shape, Shape::To | Shape::Ing)
        && dice.chance(60)
    {
        object.det = Det::Any;
        negated = true;
    }
    let not_mark = match &c.object {
        Some(object) if !c.negated => object.mark + M_DET,
        _ => c.mark + M_NOT,
    };
    if c.verb.kind == Kind::Like
        && let Some(liker) = c.dative.take()
    {
        c.object = Some(std::mem::replace(&mut c.subject, liker));
    }
    let mut out = Line::new();
    let timed = !c.times.is_empty();
    let moved = front(dice, &mut c, shape, lead, &mut out);
    let (mut subject, agreement) = match (&c.object, c.verb.kind) {
        (Some(object), Kind::Exist) => (line("there", &[c.subject.mark]), agreement(object)),
        _ if c.silent || shape == Shape::Command => (Line::new(), agreement(&c.subject)),
        _ => (english_phrase(dice, &c.subject, true), agreement(&c.subject)),
    };
    let asks_subject = matches!(c.subject.head, Head::Pronoun(WHO));
    let shape = if asks_subject && shape == Shape::Ask { Shape::Second } else { shape };
    let mut verbs = english_verbs(dice, &c, shape, agreement, negated, timed);
    let mut middle = Line::new();
    if let Some((adverb, _)) = c.adverb.take() {
        put_marked(&mut middle, dice.alternative(&adverb.english), adverb.mark);
    }
    let mut not = if negated { line("not", &[not_mark]) } else { Line::new() };
    if shape == Shape::Ask {
        out.append(&mut verbs.finite);
        out.append(&mut subject);
    } else {
        out.append(&mut subject);
        if verbs.helper {
            out.append(&mut verbs.finite);
        }
    }
    if negated && out.last().is_some_and(|token| token.text == "can") && dice.chance(60) {
        if let Some(last) = out.last_mut() {
            last.text = "cannot".to_string();
            last.marks.push(not_mark);
        }
        not.clear();
    }
    out.append(&mut not);
    out.append(&mut middle);
    out.append(&mut verbs.finite);
    out.append(&mut verbs.rest);
    english_objects(dice, &c, &verbs, moved, &mut out);
    english_tail(dice, &c, verbs.swallow, &mut out);
    out
}

/// Says what comes before the subject; tells whether the object is among it.
fn front(dice: &mut Dice, c: &mut Clause, shape: Shape, lead: Option<Line>, out: &mut Line) -> bool {
    let heavy = c.object.as_ref().is_some_and(|object| matches!(object.post, Some(Post::Relative(_))));
    if shape == Shape::Command
        && dice.chance(75)
        && let Some((please, _)) = c.adverb.take()
    {
        put(out, &please.english, &[please.mark]);
    }
    if shape == Shape::Main {
        if let Some((adverb, 'f')) = &c.adverb {
            put_marked(out, dice.alternative(&adverb.english), adverb.mark);
            if dice.chance(50) && adverb.german != "dann" && adverb.german != "vielleicht" {
                put(out, ",", &[]);
            }
            c.adverb = None;
        } else if !c.times.is_empty() && (heavy || dice.chance(33)) {
            english_times(dice, &c.times, out);
            if dice.chance(35) {
                put(out, ",", &[]);
            }
            c.times.clear();
        } else if c.place.is_some()
            && c.verb.place.1 < 100
            && dice.chance(10)
            && c.subject.post.is_none()
            && let Some(place) = c.place.take()
        {
            out.append(&mut english_prepositional(dice, &place, false));
            if dice.chance(30) {
                put(out, ",", &[]);
            }
        }
    }
    out.append(&mut lead.unwrap_or_default());
    if let Some(place) = &c.place
        && matches!(place.phrase.head, Head::Relative(..))
    {
        let place = c.place.take();
        if let Some(place) = place {
            out.append(&mut english_prepositional(dice, &place, false));
        }
    }
    let Some(object) = &c.object else { return false };
    let asked =
        matches!(object.det, Det::Which) || matches!(object.head, Head::Relative(..) | Head::Pronoun(WHAT));
    if asked {
        out.append(&mut english_phrase(dice, object, false));
    }
    asked
}

fn english_times(dice: &mut Dice, times: &[Expression], out: &mut Line) {
    let backwards = times.len() > 1 && dice.chance(40);
    let order: Vec<&Expression> =
        if backwards { times.iter().rev().collect() } else { times.iter().collect() };
    for time in order {
        put_marked(out, dice.alternative(&time.english), time.mark);
    }
}

/// The objects after the verb, with a movable particle.
fn english_objects(dice: &mut Dice, c: &Clause, verbs: &Verbs, moved: bool, out: &mut Line) {
    let particle = line(verbs.particle, &[c.mark + M_VERB]);
    let object = c.object.as_ref().filter(|_| !moved);
    let Some(dative) = &c.dative else {
        let Some(object) = object else {
            out.extend(particle);
            return;
        };
        let pronoun = matches!(object.head, Head::Pronoun(_));
        let short = object.post.is_none() && object.and.is_none();
        let mut words = english_phrase(dice, object, false);
        if pronoun || (short && dice.chance(35)) {
            out.append(&mut words);
            out.extend(particle);
        } else {
            out.extend(particle);
            out.append(&mut words);
        }
        return;
    };
    let mut receiver = english_phrase(dice, dative, false);
    if let Some(object) = object {
        let mut words = english_phrase(dice, object, false);
        if verbs.to || matches!(object.head, Head::Pronoun(_)) || dice.chance(35) {
            out.append(&mut words);
            put(out, "to", &[]);
        } else {
            receiver.append(&mut words);
        }
    } else if moved && (verbs.to || dice.chance(60)) {
        put(out, "to", &[]);
    }
    out.append(&mut receiver);
}

/// Everything after the objects.
fn english_tail(dice: &mut Dice, c: &Clause, swallow: bool, out: &mut Line) {
    if let Some(predicate) = &c.predicate {
        out.append(&mut english_predicate(dice, predicate));
    }
    if c.verb.manner == TURN
        && let Some(manner) = &c.manner
    {
        put_marked(out, dice.alternative(&manner.english), manner.mark);
    }
    if let Some(prep) = &c.prep {
        out.append(&mut english_prepositional(dice, prep, swallow));
    }
    if let Some(direction) = &c.direction {
        out.append(&mut english_prepositional(dice, direction, false));
    }
    if c.verb.manner != TURN
        && let Some(manner) = &c.manner
    {
        put_marked(out, dice.alternative(&manner.english), manner.mark);
    }
    let places = [&c.company, &c.place];
    let swapped = dice.chance(45);
    for n in 0..2 {
        if let Some(place) = places[if swapped { 1 - n } else { n }] {
            out.append(&mut english_prepositional(dice, place, false));
        }
    }
    english_times(dice, &c.times, out);
}

fn english_predicate(dice: &mut Dice, p: &Predicate) -> Line {
    let mut out = Line::new();
    if let Some((_, english)) = p.degree {
        put(&mut out, dice.alternative(english), &[p.mark + 1]);
    }
    if let Some(than) = &p.than {
        put(&mut out, dice.alternative(p.adjective.english_more), &[p.mark]);
        put(&mut out, "than", &[p.mark + 2]);
        out.append(&mut english_phrase(dice, than, false));
    } else {
        put(&mut out, dice.alternative(p.adjective.english), &[p.mark]);
    }
    out
}

fn english_joined(dice: &mut Dice, joined: &Joined, word: &str) -> Line {
    let mut out = line(word, &[joined.mark]);
    let shape = match joined.conjunction.join {
        Join::Final => Shape::Sub,
        Join::Second | Join::Inverted => Shape::Second,
        Join::To => Shape::To,
        Join::Ing => Shape::Ing,
    };
    let bare = out.is_empty();
    out.append(&mut english_clause(dice, &joined.clause, shape, None));
    if bare
        && joined.conjunction.join == Join::To
        && let Some(to) = out.first_mut()
    {
        to.marks.push(joined.mark);
    }
    out
}

fn english(dice: &mut Dice, s: &Sentence) -> Line {
    let mut stop = if matches!(s.mood, Mood::Statement | Mood::Command) { "." } else { "?" };
    let mut out = Line::new();
    let first = s.joined.as_ref().is_some_and(|joined| joined.front);
    // The order of the clauses may differ from the German one if neither needs the other to be understood.
    let bound = |c: &Clause| matches!(c.subject.head, Head::Pronoun(HE..=THEY | 10 | 11));
    let named = s.joined.as_ref().is_some_and(|joined| !bound(&joined.clause) && !bound(&s.main));
    let movable = s.joined.as_ref().is_some_and(|joined| joined.conjunction.join == Join::Final);
    let that = s.joined.as_ref().is_some_and(|joined| joined.conjunction.german == "dass");
    let flip = movable && named && !that;
    let first = if flip && dice.chance(20) { !first } else { first };
    if first && let Some(joined) = &s.joined {
        let word = dice.alternative(joined.conjunction.english);
        out.append(&mut english_joined(dice, joined, word));
        put(&mut out, ",", &[joined.mark + M_COMMA]);
    }
    let shape = match s.mood {
        Mood::Statement if first => Shape::Second,
        Mood::Statement => Shape::Main,
        Mood::YesNo | Mood::Question(_) | Mood::Which => Shape::Ask,
        Mood::Command => Shape::Command,
        Mood::Indirect(..) => Shape::Sub,
    };
    let mut lead = Line::new();
    match &s.mood {
        Mood::Question(word) => put_marked(&mut lead, dice.alternative(&word.english), word.mark),
        Mood::Indirect(opening, word, mark) => {
            stop = mark;
            put_marked(&mut lead, dice.alternative(&opening.english), opening.mark);
            put_marked(&mut lead, dice.alternative(&word.english), word.mark);
        }
        _ => {}
    }
    out.append(&mut english_clause(dice, &s.main, shape, Some(lead)));
    if !first && let Some(joined) = &s.joined {
        let word = dice.alternative(joined.conjunction.english);
        let percent = match word {
            "but" | "so" | "and so" | "for" | "which is why" | "but nevertheless" | "and yet" => 100,
            "although" | "even though" | "though" => 50,
            "and" if !joined.clause.silent => 40,
            _ => 0,
        };
        if dice.chance(percent) {
            put(&mut out, ",", &[joined.mark + M_COMMA]);
        }
        out.append(&mut english_joined(dice, joined, word));
    }
    put(&mut out, stop, &[s.mark + M_STOP]);
    tidy(out)
}

// ---------------------------------------------------------------------------------------------------------
// Pairs
// ---------------------------------------------------------------------------------------------------------

fn link(source: &Line, target: &Line) -> Vec<(u32, u32)> {
    let mut links = Vec::new();
    for (i, from) in (0..).zip(source) {
        for (j, to) in (0..).zip(target) {
            if from.marks.iter().any(|mark| to.marks.contains(mark)) {
                links.push((i, j));
            }
        }
    }
    links
}

fn texts(line: Line) -> Vec<String> {
    line.into_iter().map(|token| token.text).collect()
}

/// Makes one sentence: `below(n)` gives a uniform number below n; all choices come from it, so the same
/// numbers make the same sentence.
pub fn sentence(below: &mut dyn FnMut(usize) -> usize, references: usize) -> Pair {
    let mut dice = Dice { below, marks: 0 };
    let tree = draw(&mut dice);
    let source = german(&mut dice, &tree);
    let mut targets = Vec::with_capacity(references);
    let mut links = Vec::with_capacity(references);
    for _ in 0..references {
        let target = english(&mut dice, &tree);
        links.push(link(&source, &target));
        targets.push(texts(target));
    }
    Pair { source: texts(source), targets, links }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A linear congruential generator.
    fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed;
        move |n| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap_or(0) % n
        }
    }

    fn sample(count: usize, references: usize) -> Vec<Pair> {
        let mut below = numbers(7);
        (0..count).map(|_| sentence(&mut below, references)).collect()
    }

    #[test]
    fn same_numbers_same_sentence() {
        for seed in 0..50 {
            assert_eq!(sentence(&mut numbers(seed), 3), sentence(&mut numbers(seed), 3));
        }
    }

    #[test]
    fn links_are_sorted_and_within_range() {
        for pair in sample(2000, 2) {
            assert_eq!(pair.links.len(), pair.targets.len());
            for (links, target) in pair.links.iter().zip(&pair.targets) {
                assert!(links.is_sorted());
                for &(i, j) in links {
                    assert!(usize::try_from(i).is_ok_and(|i| i < pair.source.len()));
                    assert!(usize::try_from(j).is_ok_and(|j| j < target.len()));
                }
            }
        }
    }

    #[test]
    fn content_words_are_linked() {
        let pairs = sample(2000, 1);
        let unlinked = |pair: &&Pair| {
            (0..)
                .zip(&pair.source)
                .any(|(i, word)| word.chars().count() > 4 && !pair.links[0].iter().any(|l| l.0 == i))
        };
        assert!(pairs.iter().filter(unlinked).count() < 40);
    }

    #[test]
    fn tokens_are_clean() {
        for pair in sample(2000, 2) {
            for word in pair.source.iter().chain(pair.targets.iter().flatten()) {
                assert!(
                    !word.is_empty()
                        && *word == word.to_lowercase()
                        && !word.contains([' ', '_', '~', '/', ':'])
                );
            }
            assert!(pair.source.len() >= 3 && pair.source.len() < 40, "{:?}", pair.source);
        }
    }

    #[test]
    fn sentences_are_long_and_varied() {
        let pairs = sample(2000, 2);
        let words: usize = pairs.iter().map(|pair| pair.source.len()).sum();
        assert!(words * 10 >= pairs.len() * 105 && words <= pairs.len() * 15);
        let mut sources: Vec<_> = pairs.iter().map(|pair| &pair.source).collect();
        sources.sort();
        sources.dedup();
        assert!(sources.len() * 10 >= pairs.len() * 9);
        let different = pairs.iter().filter(|pair| pair.targets[0] != pair.targets[1]).count();
        assert!(different * 2 > pairs.len());
    }

    #[test]
    fn as_many_references_as_asked() {
        for references in 1..=4 {
            assert!(sample(20, references).iter().all(|pair| pair.targets.len() == references));
        }
    }
}
